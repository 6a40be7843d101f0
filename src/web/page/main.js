// The first script: theme, the connection, and which view is shown. Views are functions that fill the
// main element and return what ends them.

import {keepUpToDate} from "./data.js";
import {showOverview} from "./overview.js";
import {showRun} from "./run.js";
import {showSweeps} from "./sweeps.js";
import {setUpTheme} from "./theme.js";

const main = document.getElementById("main"), live = document.getElementById("live");
let leave = null;

function show() {
    const [, view, id] = location.hash.split("/");
    leave?.();
    leave = view === "run" ? showRun(main, Number(id)) : view === "sweeps" ? showSweeps(main) : showOverview(main);
    for (const link of document.querySelectorAll("[data-view]")) {
        const here = link.dataset.view === (view === "sweeps" ? "sweeps" : view === "run" ? "" : "runs");
        if (here)
            link.setAttribute("aria-current", "page");
        else
            link.removeAttribute("aria-current");
    }
}

// The token is in the cookie by now; it need not stay in the address, the history or a screenshot.
if (new URLSearchParams(location.search).has("token"))
    history.replaceState(null, "", location.pathname + location.hash);

setUpTheme(document.getElementById("theme"));
document.querySelector(".skip").addEventListener("click", event => {
    event.preventDefault();
    main.focus();
});
keepUpToDate((answers, fault) => {
    live.className = `live ${answers ? "on" : "off"}`;
    live.textContent = answers ? "live" : "no connection";
    live.title = answers ? "asks every two seconds" : String(fault?.message ?? "");
}).then(() => {
    window.addEventListener("hashchange", () => {
        show();
        window.scrollTo(0, 0);
    });
    show();
});
