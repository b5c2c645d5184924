// In the administration a click on a question of the tree opens that split on the model's page.

document.addEventListener("octweb:node", (event) => {
  const page = event.target.dataset.page;
  if (!page) return;
  event.preventDefault();
  window.location.assign(`${page}?node=${event.detail.id}`);
});
