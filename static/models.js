// Model page: one split at a time, chosen in the tree, in the list or in the address (#node-3).
"use strict";

const sections = [...document.querySelectorAll("section.split")];

function choose() {
  const wanted = document.getElementById(location.hash.slice(1));
  const chosen = sections.includes(wanted) ? wanted : sections.find((s) => !s.hidden) ?? sections[0];
  for (const section of sections) section.hidden = section !== chosen;
  for (const link of document.querySelectorAll('a[href^="#node-"]')) {
    const current = chosen !== undefined && link.getAttribute("href") === `#${chosen.id}`;
    if (current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  chosen?.dispatchEvent(new CustomEvent("octweb:shown", { bubbles: true }));
}

if (sections.length > 0) {
  for (const section of sections.slice(1)) section.hidden = true;
  choose();
  window.addEventListener("hashchange", () => {
    choose();
    if (location.hash.startsWith("#node-")) document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "nearest" });
  });
}

// on a phone the list takes the place of the picture
if (window.matchMedia("(max-width: 720px)").matches) {
  for (const list of document.querySelectorAll("details.as-list")) list.open = true;
}
