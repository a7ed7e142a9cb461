// Sets the theme before the first paint. No attribute means: follow the system.
(() => {
  "use strict";
  try {
    const theme = localStorage.getItem("kbench-theme");
    if (theme === "light" || theme === "dark") {
      document.documentElement.dataset.theme = theme;
    }
  } catch {
    // Storage is blocked: the system's theme stands.
  }
})();
