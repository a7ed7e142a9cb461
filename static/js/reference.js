// Opens the operation that the address names.
"use strict";

const show = () => {
  const named = document.getElementById(location.hash.slice(1));
  if (named instanceof HTMLDetailsElement) {
    named.open = true;
    named.scrollIntoView();
  }
};
window.addEventListener("hashchange", show);
show();
