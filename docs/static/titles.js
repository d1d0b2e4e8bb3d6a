// Titles that are dotted names may break behind their dots, where a phone is too narrow for them.
document.addEventListener("DOMContentLoaded", () => {
  const title = document.querySelector("article h1")?.firstChild;
  if (title?.nodeType !== Node.TEXT_NODE || title.textContent.includes(" ")) return;
  const parts = title.textContent.split(/(?<=\.)/);
  title.replaceWith(...parts.flatMap(part => [document.createElement("wbr"), part]));
});
