// The choice of light or dark, before the first paint. It is the only thing that the console keeps
// in the browser.
const chosen = localStorage.getItem('limen-theme');
if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
