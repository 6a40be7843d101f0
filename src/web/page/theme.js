// Light, dark, or as the system has it; remembered by the browser.

const KEY = "opc-theme", ORDER = ["auto", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();

export function onTheme(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

export function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function apply(choice) {
    const theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
    document.documentElement.dataset.theme = theme;
    for (const listener of [...listeners])
        listener();
}

export function setUpTheme(button) {
    let choice = localStorage.getItem(KEY);
    choice = ORDER.includes(choice) ? choice : "auto";
    const show = () => {
        button.textContent = {auto: "\u25D0 auto", light: "\u2600 light", dark: "\u263E dark"}[choice];
        button.setAttribute("aria-label", `Theme: ${choice}`);
        apply(choice);
    };
    button.addEventListener("click", () => {
        choice = ORDER[(ORDER.indexOf(choice) + 1) % ORDER.length];
        localStorage.setItem(KEY, choice);
        show();
    });
    dark.addEventListener("change", show);
    show();
}
