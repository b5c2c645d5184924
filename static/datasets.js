// Upload by drag and drop with a progress bar. The form also works without this script.
"use strict";

(() => {
  const form = document.getElementById("upload-form");
  if (!form) return;
  const drop = document.getElementById("drop");
  const input = document.getElementById("file");
  const bar = document.getElementById("upload-progress");
  const words = document.getElementById("upload-words");
  const place = document.getElementById("upload-error");

  function showError(text, problems) {
    place.textContent = "";
    const box = document.createElement("div");
    box.className = "msg error";
    box.setAttribute("role", "alert");
    const bold = document.createElement("b");
    bold.textContent = text;
    box.append(bold);
    if (problems?.length > 1) {  // a single one repeats the text
      const list = document.createElement("ul");
      for (const problem of problems) {
        const item = document.createElement("li");
        item.textContent = problem;
        list.append(item);
      }
      box.append(list);
    }
    place.append(box);
    document.querySelector("details.reading").open = true;  // another delimiter or encoding often helps
    bar.hidden = true;
    words.textContent = "";
  }

  function send() {
    const file = input.files[0];
    if (!file) return showError("Choose a file first.");
    const limit = Number(form.dataset.limit);
    if (file.size > limit * 1e6) return showError(`The file has ${Math.ceil(file.size / 1e6)} MB; ${limit} MB is the limit of this server.`);
    place.textContent = "";
    const request = new XMLHttpRequest();
    request.open("POST", form.action || window.location.href);
    request.setRequestHeader("X-Requested-With", "XMLHttpRequest");
    request.responseType = "json";
    bar.hidden = false;
    request.upload.addEventListener("progress", (event) => {
      if (!event.lengthComputable) return;
      bar.value = (100 * event.loaded) / event.total;
      words.textContent = event.loaded < event.total ? `${Math.round(bar.value)}\u202f% sent` : "Reading the file…";
    });
    request.addEventListener("load", () => {
      if (request.response?.url) window.location.assign(request.response.url);
      else showError(request.response?.error || `The server refused the file (status ${request.status}).`, request.response?.problems);
    });
    request.addEventListener("error", () => showError("The connection broke off. Nothing was stored; try again."));
    request.send(new FormData(form));
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
  for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) { input.files = event.dataTransfer.files; send(); }
  });
})();
