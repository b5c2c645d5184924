// Administration: a click on a split of the tree opens it on the model's page.

document.addEventListener("octweb:node", (event) => {
  const page = event.target.dataset.page;
  if (!page) return;
  event.preventDefault();
  window.location.assign(`${page}?node=${event.detail.id}`);
});
