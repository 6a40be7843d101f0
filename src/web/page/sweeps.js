// The view of sweeps: each directory of runs with its progress, and its runs as a grid, seeds across.

import {onChange, roots, runs} from "./data.js";
import {el, number, splitPath, STATES} from "./format.js";
import {gallery} from "./run.js";

// The name of a run without its seed, as opc sweep puts it: "s3_corrected" and "corrected_s3" are both
// "corrected".
function withoutSeed(name, seed) {
    const rest = name.split("_").filter(part => part !== `s${seed}`).join("_");
    return rest || "all settings";
}

function bySweep() {
    const sweeps = new Map();
    for (const run of runs.values()) {
        const [folder, name] = splitPath(run.run);
        if (!sweeps.has(folder))
            sweeps.set(folder, []);
        sweeps.get(folder).push({...run, name});
    }
    return [...sweeps].filter(([, list]) => list.length > 1).sort(([a], [b]) => a < b ? -1 : 1);
}

function progress(list) {
    const share = {done: 0, running: 0, failed: 0, other: 0};
    let epochs = 0;
    for (const run of list) {
        const kind = run.state === "done" || run.state === "running" ? run.state
            : run.state === "failed" || run.state === "diverged" ? "failed" : "other";
        share[kind]++;
        epochs += run.epochs ? Math.min(1, run.epoch / run.epochs) : 0;
    }
    const words = [`${share.done} of ${list.length} done`, share.running ? `${share.running} running` : "",
                   share.failed ? `${share.failed} failed or diverged` : "", share.other ? `${share.other} waiting or stopped` : "",
                   `${Math.floor(100 * epochs / list.length)} % of all epochs`].filter(Boolean).join(", ");
    const split = el("div", {class: "split", role: "img", "aria-label": words});
    for (const [kind, n] of Object.entries(share))
        if (n) {
            const part = el("i", {class: kind});
            part.style.flexGrow = n;
            split.append(part);
        }
    return [el("p", {class: "soft"}, words), split];
}

function grid(list) {
    const seeds = [...new Set(list.map(r => r.seed))].sort((a, b) => a - b);
    const rows = new Map();
    for (const run of list) {
        const key = withoutSeed(run.name, run.seed);
        if (!rows.has(key))
            rows.set(key, new Map());
        if (!rows.get(key).has(run.seed))
            rows.get(key).set(run.seed, run);
    }
    const cell = run => run
        ? el("td", {}, el("a", {class: `cell state ${run.state}`, href: `#/run/${run.id}`, title: `${run.run}: ${run.state}${run.why ? ", " + run.why : ""}`},
            el("span", {}, number(run.eval_return)),
            el("small", {}, `${STATES[run.state]} ${run.state === "running" ? `${run.epoch}/${run.epochs}` : run.state}`)))
        : el("td", {class: "soft"}, "\u2013");
    return el("div", {class: "scroll"}, el("table", {class: "grid"},
        el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "settings"), ...seeds.map(s => el("th", {scope: "col"}, `seed ${s ?? "?"}`)))),
        el("tbody", {}, ...[...rows].sort(([a], [b]) => a < b ? -1 : 1).map(([key, cells]) =>
            el("tr", {}, el("th", {scope: "row"}, key), ...seeds.map(s => cell(cells.get(s))))))));
}

export function showSweeps(main) {
    const galleries = roots.map((root, i) => gallery({root: i}, `Exhibits in ${root}`));
    function draw() {
        const sweeps = bySweep();
        const cards = sweeps.slice(0, 60).map(([folder, list]) => el("section", {class: "card"},
            el("div", {class: "head"}, el("h2", {class: "grow"}, folder || ".")), ...progress(list), grid(list.slice(0, 1000))));
        main.replaceChildren(...(cards.length ? cards : [el("p", {class: "empty"}, "No directory holds more than one run.")]),
                             ...galleries);
    }
    draw();
    return onChange(draw);
}
