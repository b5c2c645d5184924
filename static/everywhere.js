// On every page: the search field (Ctrl K), selects that open another page, and notice of a run that has ended.
"use strict";

(() => {
  const find = document.getElementById("find");
  let dialog;
  let timer;
  let lastRequest = 0;

  function build() {
    dialog = document.createElement("dialog");
    dialog.className = "search";
    dialog.setAttribute("aria-label", "Search");
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = "Data set, column, run, model, predicted file …";
    for (const [name, value] of [["role", "combobox"], ["aria-label", "Find a data set, column, run, experiment, workbench, model or predicted file"], ["aria-expanded", "false"], ["aria-controls", "search-hits"], ["aria-autocomplete", "list"], ["maxlength", "200"]]) input.setAttribute(name, value);
    const list = document.createElement("ul");
    list.id = "search-hits";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Results");
    list.hidden = true;
    const words = document.createElement("p");
    words.setAttribute("role", "status");
    words.textContent = "Type a part of a name.";
    dialog.append(input, list, words);
    document.body.append(dialog);
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => search(input.value), 150); });
    input.addEventListener("keydown", handleKey);
    list.addEventListener("click", (event) => {
      const item = event.target.closest("li");
      if (item && (event.ctrlKey || event.metaKey)) window.open(item.dataset.url);
      else if (item) window.location.assign(item.dataset.url);
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }

  async function search(text) {
    const number = ++lastRequest;
    let hits = [];
    let answered = true;
    let all = true;
    if (text.trim()) {
      const answer = await fetch(`${find.dataset.url}?format=json&q=${encodeURIComponent(text)}`).catch(() => null);
      answered = Boolean(answer?.ok);
      if (answered) ({ hits, all } = await answer.json());
      if (!all) hits.push({ kind: "search", name: "All that was found", about: "the first of each kind are above", url: `${find.dataset.url}?q=${encodeURIComponent(text)}` });
    }
    if (number === lastRequest) show(hits, text, answered, all);
  }

  function show(hits, text, answered, all) {
    const [input, list, words] = dialog.children;
    list.textContent = "";
    hits.forEach((hit, i) => {
      const item = document.createElement("li");
      item.id = `search-hit-${i}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(i === 0));
      item.dataset.url = hit.url;
      for (const [style, content] of [["kind-of", hit.kind], ["name", hit.name], ["about", hit.about]]) {
        const part = document.createElement("span");
        part.className = style;
        part.textContent = content;
        item.append(part);
      }
      list.append(item);
    });
    list.hidden = !hits.length;
    input.setAttribute("aria-expanded", String(hits.length > 0));
    if (hits.length) input.setAttribute("aria-activedescendant", "search-hit-0"); else input.removeAttribute("aria-activedescendant");
    words.textContent = !answered ? "The server does not answer. Type on to ask again." : hits.length ? `${all ? `${hits.length} found` : "More were found than are shown"}. Arrows choose, Enter opens.` : text.trim() ? `Nothing has “${text.trim()}” in its name.` : "Type a part of a name.";
  }

  function handleKey(event) {
    const [input, list] = dialog.children;
    const items = [...list.children];
    const at = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
    if (event.key === "Escape") { event.preventDefault(); dialog.close(); return; }  // by default, Escape would only clear the field
    if (event.key === "Enter" && items[at]) { event.preventDefault(); window.location.assign(items[at].dataset.url); }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp" || !items.length) return;
    event.preventDefault();
    const next = (at + (event.key === "ArrowDown" ? 1 : items.length - 1)) % items.length;
    items.forEach((item, i) => item.setAttribute("aria-selected", String(i === next)));
    items[next].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", items[next].id);
  }

  function open() {
    if (!find) return;
    if (!dialog) build();
    if (!dialog.open) dialog.showModal();
    dialog.firstChild.focus();
    dialog.firstChild.select();
  }

  find?.addEventListener("click", (event) => { if (!event.ctrlKey && !event.metaKey) { event.preventDefault(); open(); } });
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") { event.preventDefault(); open(); }
  });

  document.addEventListener("change", (event) => {
    const select = event.target.closest("select[data-go]");
    if (select) window.location.assign(select.dataset.go + encodeURIComponent(select.value));
  });

  // if a run ends while its page is hidden, say so in the title and, if permitted, by a notification
  let running = document.getElementById("live")?.dataset.finished === "0";
  document.addEventListener("htmx:afterSwap", () => {
    const live = document.getElementById("live");
    if (!live || !running || live.dataset.finished !== "1") return;
    running = false;
    document.dispatchEvent(new CustomEvent("octweb:ended"));
    const name = live.dataset.name || document.title;
    const ended = live.querySelector(".head .badge")?.textContent.trim() || "Ended"; // in the words of the page
    document.title = `${ended}: ${document.title}`;
    if (document.hidden && "Notification" in window && Notification.permission === "granted") new Notification("octweb", { body: `${name}: ${ended.toLowerCase()}.`, icon: document.querySelector("link[rel=icon]")?.href });
  });
  // the button shows the permission of this browser, also on later visits
  function answered(button, answer) {
    if (answer === "default") return;
    button.textContent = answer === "granted" ? "This browser will say so" : "The browser does not allow it";
    button.disabled = true;
  }
  for (const button of document.querySelectorAll("[data-notify]")) answered(button, "Notification" in window ? Notification.permission : "denied");
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-notify]");
    if (button && "Notification" in window) Notification.requestPermission().then((answer) => answered(button, answer));
  });
})();
