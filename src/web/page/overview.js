// The view of all runs: filters, the curves of those that are chosen, and the table.

import {Chart} from "./chart.js";
import {ask, onChange, roots, runs} from "./data.js";
import {duration, el, number, splitPath, stateBadge, STATES} from "./format.js";

const PAGE = 100, MAX_CURVES = 400;
const AXES = {env_steps: "real steps", total_steps: "real steps, random ones included", epoch: "epochs"};
const COLUMNS = [
    {key: "run", title: "run"},
    {key: "state", title: "state"},
    {key: "task", title: "task", extra: true},
    {key: "method", title: "method", extra: true},
    {key: "seed", title: "seed", number: true, extra: true},
    {key: "epoch", title: "epoch", number: true},
    {key: "eval_return", title: "return", number: true},
    {key: "best_return", title: "best", number: true, extra: true},
    {key: "env_steps", title: "steps", number: true, extra: true},
    {key: "steps_per_s", title: "steps/s", number: true, extra: true},
    {key: "remaining_s", title: "left", number: true, extra: true},
    {key: "host", title: "host", extra: true},
];
const MEASURES = ["eval_return", "train_return", "eval_length", "learned_1", "learned_5", "learned_10",
                  "corrected_1", "corrected_5", "corrected_10", "fit_loss", "critic_loss", "actor_loss", "q",
                  "alpha", "entropy", "rollout_length"];

// What the user has chosen; it stays while other views are shown.
const choice = {words: "", state: null, sort: "run", down: false, shown: PAGE, chosen: new Set(),
                of: "eval_return", over: "env_steps", smooth: 1};

// Every word must be somewhere in the run's path, task, method, state, host or seed (seed:3).
function matches(run, words) {
    const text = `${run.run} ${run.task} ${run.method} ${run.state} ${run.host} seed:${run.seed}`.toLowerCase();
    return words.every(word => text.includes(word));
}

function compare(a, b) {
    const x = a[choice.sort], y = b[choice.sort];
    if ((x ?? "") === (y ?? ""))
        return a.run < b.run ? -1 : 1;
    if (x === null || x === undefined || x === "")
        return 1;
    if (y === null || y === undefined || y === "")
        return -1;
    return (x < y ? -1 : 1) * (choice.down ? -1 : 1);
}

export function showOverview(main) {
    const count = el("span", {class: "soft", role: "status"});
    const chips = el("div", {class: "chips", role: "group", "aria-label": "Filter by state"});
    const search = el("input", {type: "search", placeholder: "filter: path, task, method, seed:3",
                                "aria-label": "Filter runs", size: 34, value: choice.words});
    const body = el("tbody"), more = el("button", {type: "button", class: "more"});
    const heads = COLUMNS.map(c => el("th", {scope: "col", class: c.number ? "number" : null},
        el("button", {type: "button", onclick: () => sortBy(c)}, c.title)));
    const all = el("input", {type: "checkbox", "aria-label": "Choose all runs that are shown"});
    const clear = el("button", {type: "button"}, "clear choice");
    const charts = el("div", {class: "charts"}), note = el("p", {class: "note"});
    const curves = new Map(); // by panel title
    const rows = new Map();   // by number of the run

    const select = (label, values, key) => {
        const node = el("select", {"aria-label": label, onchange: () => {
            choice[key] = node.value;
            drawCurves();
        }}, ...values.map(([v, text]) => el("option", {value: v, selected: String(choice[key]) === String(v)}, text)));
        return el("label", {}, label, node);
    };
    main.replaceChildren(
        el("section", {class: "card", "aria-label": "Learning curves"},
            el("div", {class: "head"}, el("h2", {class: "grow"}, "Learning curves"),
                el("div", {class: "tools"},
                    select("of", MEASURES.map(m => [m, m]), "of"),
                    select("over", [["env_steps", "real steps"], ["total_steps", "all steps"], ["epoch", "epochs"]], "over"),
                    select("smooth", [[1, "off"], [3, "3"], [5, "5"], [11, "11"], [25, "25"]], "smooth"))),
            charts, note),
        el("section", {class: "card", "aria-label": "Runs"},
            el("div", {class: "head"}, el("h2", {}, "Runs"), count, el("span", {class: "grow"}),
                el("div", {class: "tools"}, search, clear)),
            chips,
            el("div", {class: "scroll"}, el("table", {class: "runs"},
                el("thead", {}, el("tr", {}, el("th", {}, all), ...heads)), body)),
            more));

    function visible() {
        const words = choice.words.toLowerCase().split(/\s+/).filter(Boolean);
        return [...runs.values()].filter(r => (!choice.state || r.state === choice.state) && matches(r, words)).sort(compare);
    }

    function sortBy(column) {
        choice.down = choice.sort === column.key ? !choice.down : !!column.number;
        choice.sort = column.key;
        drawTable();
    }

    // Cells of a run; a row that is there already only gets new cells.
    function fill(row, run) {
        const [folder, name] = splitPath(run.run);
        const box = el("input", {type: "checkbox", "aria-label": `Choose ${run.run}`});
        box.checked = choice.chosen.has(run.id);
        box.addEventListener("change", () => {
            choice.chosen[box.checked ? "add" : "delete"](run.id);
            drawCurves();
            summarize();
        });
        const share = run.epochs ? run.epoch / run.epochs : 0;
        row.replaceChildren(
            el("td", {}, box),
            el("td", {class: "name"}, el("a", {href: `#/run/${run.id}`}, folder ? el("span", {class: "soft"}, `${folder}/`) : null, name)),
            el("td", {}, stateBadge(run)),
            el("td", {class: "extra"}, run.task || "\u2013"), el("td", {class: "extra"}, run.method || "\u2013"),
            el("td", {class: "number extra"}, number(run.seed)),
            el("td", {class: "number epoch"}, el("span", {class: "meter"},
                el("progress", {value: share, max: 1, "aria-label": `${Math.round(100 * share)} %`}),
                `${run.epoch}${run.epochs ? ` / ${run.epochs}` : ""}`)),
            el("td", {class: "number", "data-label": "return"}, number(run.eval_return)),
            el("td", {class: "number extra"}, number(run.best_return)),
            el("td", {class: "number extra"}, number(run.env_steps)),
            el("td", {class: "number extra"}, number(run.steps_per_s)),
            el("td", {class: "number extra"}, run.state === "running" ? duration(run.remaining_s) : "\u2013"),
            el("td", {class: "extra"}, run.host || "\u2013"));
    }

    function drawChips() {
        const counts = {};
        for (const run of runs.values())
            counts[run.state] = (counts[run.state] ?? 0) + 1;
        chips.replaceChildren(...[null, ...Object.keys(STATES).filter(s => counts[s])].map(state =>
            el("button", {type: "button", class: "chip", "aria-pressed": String(choice.state === state), onclick: () => {
                choice.state = state;
                choice.shown = PAGE;
                drawAll();
            }}, `${state ? STATES[state] + " " : ""}${state ?? "all"} `, el("b", {}, String(state ? counts[state] : runs.size)))));
    }

    function drawTable(changed) {
        const list = visible(), shown = list.slice(0, choice.shown);
        heads.forEach((th, i) => {
            const sorted = COLUMNS[i].key === choice.sort;
            th.setAttribute("aria-sort", sorted ? (choice.down ? "descending" : "ascending") : "none");
            th.firstChild.textContent = COLUMNS[i].title + (sorted ? (choice.down ? " \u25BE" : " \u25B4") : "");
        });
        for (const run of shown) {
            if (!rows.has(run.id))
                rows.set(run.id, el("tr"));
            else if (changed && !changed.has(run.id))
                continue;
            fill(rows.get(run.id), run);
        }
        const wanted = shown.map(run => rows.get(run.id));
        if (wanted.length !== body.children.length || wanted.some((row, i) => body.children[i] !== row))
            body.replaceChildren(...wanted);
        more.hidden = list.length <= shown.length;
        more.textContent = `show ${Math.min(PAGE, list.length - shown.length)} more of ${list.length.toLocaleString("en")}`;
        summarize(list);
    }

    function summarize(list = visible()) {
        count.textContent = runs.size ? `${list.length.toLocaleString("en")} of ${runs.size.toLocaleString("en")}` +
            (choice.chosen.size ? `, ${choice.chosen.size} chosen` : "") : `none below ${roots.join(", ")} yet`;
        clear.hidden = choice.chosen.size === 0;
        all.checked = list.length > 0 && list.slice(0, choice.shown).every(r => choice.chosen.has(r.id));
    }

    // The chosen runs, or all that the filter leaves.
    function drawn() {
        const list = (choice.chosen.size ? [...runs.values()].filter(r => choice.chosen.has(r.id)) : visible());
        return list.filter(r => r.rows > 0).map(r => r.id).slice(0, MAX_CURVES).sort((a, b) => a - b);
    }

    let asking = false, again = false;
    async function drawCurves() {
        if (asking) {
            again = true;
            return;
        }
        asking = true;
        const ids = drawn();
        try {
            const answer = ids.length ? await ask("/api/curves", {runs: ids.join(","), of: choice.of, over: choice.over, smooth: choice.smooth})
                : {panels: [], groups: []};
            note.textContent = answer.groups.length
                ? "line: median over seeds; band: quartiles. Runs that differ in their seed only are one line" +
                  (choice.chosen.size ? "." : "; choose runs in the table to see only those.")
                : "No run has a value yet.";
            const named = answer.panels.map((title, p) => [title, answer.groups.filter(g => g.panel === p)]);
            for (const [title, chart] of curves)
                if (!answer.panels.includes(title) || chart.xLabel !== AXES[choice.over]) {
                    chart.destroy();
                    chart.node.remove();
                    curves.delete(title);
                }
            for (const [title, groups] of named) {
                if (!curves.has(title)) {
                    curves.set(title, new Chart(title, AXES[choice.over]));
                    charts.append(curves.get(title).node);
                }
                curves.get(title).set(groups);
            }
        } catch (fault) {
            note.textContent = fault.message;
        }
        asking = false;
        if (again) {
            again = false;
            drawCurves();
        }
    }

    function drawAll(changed) {
        drawChips();
        drawTable(changed);
        const ids = new Set(drawn());
        if (!changed || [...changed].some(id => ids.has(id)))
            drawCurves();
    }

    search.addEventListener("input", () => {
        choice.words = search.value;
        choice.shown = PAGE;
        drawAll();
    });
    more.addEventListener("click", () => {
        choice.shown += PAGE;
        drawTable();
    });
    clear.addEventListener("click", () => {
        choice.chosen.clear();
        drawAll();
    });
    all.addEventListener("change", () => {
        for (const run of visible().slice(0, choice.shown))
            choice.chosen[all.checked ? "add" : "delete"](run.id);
        drawAll();
    });
    const forget = onChange(drawAll);
    drawAll();
    return () => {
        forget();
        for (const chart of curves.values())
            chart.destroy();
    };
}
