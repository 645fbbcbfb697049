// names for what the theme leaves without one, and keys for what only a mouse could scroll
const name = () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-code__nav").forEach((nav, place) => nav.setAttribute("aria-label", `Code ${place + 1}`));
  document.querySelectorAll(".md-typeset__scrollwrap, .highlight pre > code").forEach((part) => { part.tabIndex = 0; });
};
name();
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
