// Closes the groups of pages beside a page, but the one that has it, and brings the page's entry into sight. Without
// JavaScript all groups are open.
(() => {
  for (const caption of document.querySelectorAll(".sidebar-tree > .caption")) {
    const pages = caption.nextElementSibling;
    const group = document.createElement("details");
    caption.before(group);
    group.appendChild(document.createElement("summary")).append(caption);
    group.append(pages);
    group.open = pages.querySelector(".current") !== null;
  }
  const current = document.querySelector(".sidebar-tree .current-page");
  const list = document.querySelector(".sidebar-scroll");
  // Not scrollIntoView, which would move the page, too; at once, where the theme would glide.
  const down = current && current.getBoundingClientRect().top - list.getBoundingClientRect().top - list.clientHeight / 2;
  if (current) list.scrollTo({ top: down, behavior: "instant" });
})();
