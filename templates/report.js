// Conveniences only: everything on the page can be read without them.
"use strict";
(() => {
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const checks = all("details.check");

  // Filter the checklist by status.
  const bar = document.querySelector(".filter");
  const buttons = all(".filter [data-show]");
  const show = (status) => {
    let shown = 0;
    for (const check of checks) {
      check.hidden = status !== "" && check.dataset.status !== status;
      shown += check.hidden ? 0 : 1;
    }
    for (const group of all("#checklist .group")) {
      group.hidden = !group.querySelector("details.check:not([hidden])");
    }
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.show === status));
    }
    bar.querySelector("[role=status]").textContent = `${shown} of ${checks.length} checks shown`;
  };
  for (const button of buttons) button.addEventListener("click", () => show(button.dataset.show));
  for (const button of all("[data-open]")) {
    button.addEventListener("click", () => {
      for (const item of all("#checklist details")) item.open = button.dataset.open === "true";
    });
  }
  bar.hidden = checks.length === 0;

  // A link to a check opens it, and whatever hides it.
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target || !target.matches("details")) return;
    if (target.hidden) show("");
    for (let item = target; item; item = item.parentElement.closest("details")) item.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#check-']");
    if (link && link.hash === location.hash) reveal();
  });
  reveal();

  // Paper cannot be clicked.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    for (const item of closed) item.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const item of closed) item.open = false;
  });

  // Hand out the embedded document as a file.
  const download = document.getElementById("download");
  const text = document.getElementById("report-document").textContent;
  const link = download.querySelector("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  download.hidden = false;
})();
