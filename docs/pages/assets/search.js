// To the search, a leading dash means "pages without this word". Here it begins an option: --confirm.
document.addEventListener("DOMContentLoaded", () => {
  const field = document.querySelector("[data-md-component=search-query]");
  if (field === null) return;
  const typed = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
  Object.defineProperty(field, "value", {
    get: () => typed.get.call(field).replace(/(^|\s)-+(?=\w)/g, "$1"),
    set: (text) => typed.set.call(field, text),
  });
});
