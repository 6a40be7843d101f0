// The view of one run: facts, its own curves, settings, what differs from another run, its log, films
// and exhibits.

import {Chart} from "./chart.js";
import {ask, onChange, runs} from "./data.js";
import {duration, el, number, stateBadge} from "./format.js";

// Charts of a run: those whose columns it has.
const CHARTS = [
    {title: "Return", lines: ["eval_return", "train_return"], band: ["eval_min", "eval_max"]},
    {title: "On-policy model error, after 1, 5, 10 steps: learned (eq. 2)", lines: ["learned_1", "learned_5", "learned_10"]},
    {title: "On-policy model error, after 1, 5, 10 steps: corrected (eq. 5)", lines: ["corrected_1", "corrected_5", "corrected_10"]},
    {title: "Model fit: loss and holdout errors", lines: ["fit_loss", "holdout_0", "holdout_1", "holdout_2", "holdout_3", "holdout_4", "holdout_5", "holdout_6"]},
    {title: "Critics: values and targets", lines: ["q", "q_target", "target_min", "target_max"]},
    {title: "Losses", lines: ["critic_loss", "actor_loss"]},
    {title: "Entropy and temperature", lines: ["entropy", "alpha"]},
    {title: "Imagined rollouts: length and horizon", lines: ["rollout_length", "horizon"]},
];

function facts(run) {
    const entries = [
        ["state", stateBadge(run)], ["task", run.task || "\u2013"], ["method", run.method || "\u2013"], ["seed", number(run.seed)],
        ["epoch", `${run.epoch}${run.epochs ? ` of ${run.epochs}` : ""}`], ["last return", number(run.eval_return)],
        ["best return", run.best_epoch ? `${number(run.best_return)} (epoch ${run.best_epoch})` : "\u2013"],
        ["real steps", number(run.env_steps)], ["steps/s", number(run.steps_per_s)], ["time", duration(run.spent_s)],
        ["left", run.state === "running" ? `about ${duration(run.remaining_s)}` : "\u2013"], ["host", run.host || "\u2013"],
    ];
    return el("dl", {class: "facts"}, ...entries.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))));
}

function table(heads, rows) {
    return el("table", {}, el("thead", {}, el("tr", {}, ...heads.map(h => el("th", {scope: "col"}, h)))),
              el("tbody", {}, ...rows.map(cells => el("tr", {}, ...cells.map((c, i) =>
                  el("td", {class: i === 0 ? "mono" : null}, c))))));
}

// Settings, with a filter; those that differ from their default come with a word.
function settingsCard(run) {
    const search = el("input", {type: "search", placeholder: "filter settings", "aria-label": "Filter settings"});
    const only = el("input", {type: "checkbox", id: "changed"});
    const box = el("div", {class: "settings"});
    let settings = [];
    const draw = () => {
        const word = search.value.toLowerCase();
        const rows = settings.filter(s => (!only.checked || !s.default) && (s.key + " " + s.value).toLowerCase().includes(word));
        box.replaceChildren(rows.length ? table(["setting", "value", ""], rows.map(s =>
            [el("span", {title: s.help}, s.key), s.value, s.default ? "" : el("span", {class: "tag"}, "set")]))
            : el("p", {class: "empty"}, "No setting matches."));
    };
    search.addEventListener("input", draw);
    only.addEventListener("change", draw);
    ask("/api/settings", {run: run.id}).then(list => {
        settings = list;
        draw();
    }, fault => box.replaceChildren(el("p", {class: "empty"}, fault.message)));
    return el("section", {class: "card"}, el("div", {class: "head"}, el("h2", {class: "grow"}, "Settings"),
        el("div", {class: "tools"}, el("label", {for: "changed"}, only, "not default"), search)), box);
}

// What differs from another run, which is chosen from a list.
function differencesCard(run) {
    const box = el("div", {class: "settings"});
    // Runs of the same task first, of another method before those that differ in their seed.
    const near = r => 2 * (r.task === run.task) + (r.method !== run.method);
    const others = [...runs.values()].filter(r => r.id !== run.id)
        .sort((a, b) => near(b) - near(a) || (a.run < b.run ? -1 : 1)).slice(0, 500);
    const select = el("select", {"aria-label": "Run to compare with", onchange: show},
        ...others.map(r => el("option", {value: r.id}, r.run)));
    async function show() {
        try {
            const list = await ask("/api/differences", {a: run.id, b: select.value});
            box.replaceChildren(list.length ? table(["setting", "this run", "the other"], list.map(d => [d.key, d.a, d.b]))
                : el("p", {class: "empty"}, "No setting differs, except perhaps the seed."));
        } catch (fault) {
            box.replaceChildren(el("p", {class: "empty"}, fault.message));
        }
    }
    if (others.length)
        show();
    else
        box.append(el("p", {class: "empty"}, "There is no other run."));
    return el("section", {class: "card"}, el("div", {class: "head"}, el("h2", {class: "grow"}, "Differences"),
        el("div", {class: "tools"}, el("label", {}, "from", select))), box);
}

export function gallery(place, title) {
    const card = el("section", {class: "card"});
    card.hidden = true;
    ask("/api/files", place).then(files => {
        const address = file => "/file?" + new URLSearchParams({...place, name: file.name});
        const shown = files.filter(f => f.kind !== "table");
        if (files.length === 0)
            return;
        card.hidden = false;
        card.append(el("div", {class: "head"}, el("h2", {}, title)), el("div", {class: "gallery"}, ...shown.map(file =>
            el("figure", {}, file.kind === "film" ? el("video", {src: address(file), controls: true, preload: "metadata"})
                : el("a", {href: address(file), target: "_blank", rel: "noopener"}, el("img", {src: address(file), alt: file.name, loading: "lazy"})),
                el("figcaption", {}, file.name)))));
        const tables = files.filter(f => f.kind === "table");
        if (tables.length)
            card.append(el("p", {class: "soft"}, "Tables: ", ...tables.flatMap((file, i) =>
                [i ? ", " : "", el("a", {href: address(file), target: "_blank", rel: "noopener"}, file.name)])));
    }, () => {});
    return card;
}

export function showRun(main, id) {
    const run = runs.get(id);
    if (!run) {
        main.replaceChildren(el("p", {class: "empty"}, "There is no such run (any more). ", el("a", {href: "#/"}, "All runs")));
        return onChange(changed => changed.has(id) && showRun(main, id));
    }
    const head = el("section", {class: "card"}), charts = el("div", {class: "charts"});
    const log = el("pre", {class: "log", tabindex: "0", "aria-label": "End of log.txt"});
    const drawn = new Map();
    function showHead() {
        const now = runs.get(id) ?? run;
        head.replaceChildren(el("div", {class: "head"}, el("h1", {class: "grow"}, now.run), el("a", {href: "#/"}, "all runs")),
                             facts(now), ...(now.why ? [el("p", {class: "soft"}, `Reason: ${now.why}`)] : []));
    }
    async function showCurves() {
        const {columns} = await ask("/api/metrics", {run: id});
        const x = columns.env_steps ?? [];
        for (const plan of CHARTS) {
            const lines = plan.lines.filter(c => columns[c]?.some(v => v !== null));
            if (lines.length === 0)
                continue;
            if (!drawn.has(plan.title)) {
                drawn.set(plan.title, new Chart(plan.title, "real steps", 220));
                charts.append(drawn.get(plan.title).node);
            }
            const [low, high] = plan.band ?? [];
            drawn.get(plan.title).set(lines.map((c, i) => ({label: c, x, middle: columns[c], runs: 1,
                ...(i === 0 && columns[low] && columns[high] ? {low: columns[low], high: columns[high], runs: 2, single: true} : {})})));
        }
        if (drawn.size === 0)
            charts.replaceChildren(el("p", {class: "empty"}, "No epoch is complete yet."));
        else
            charts.querySelector(".empty")?.remove();
    }
    async function showLog() {
        const text = await ask("/api/log", {run: id});
        const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 20;
        log.textContent = text || "The log is empty.";
        if (atEnd)
            log.scrollTop = log.scrollHeight;
    }
    const refresh = () => {
        showHead();
        showCurves().catch(fault => charts.replaceChildren(el("p", {class: "empty"}, fault.message)));
        showLog().catch(fault => log.textContent = fault.message);
    };
    main.replaceChildren(head, el("section", {class: "card", "aria-label": "Curves"}, charts),
        el("div", {class: "pair"}, settingsCard(run), differencesCard(run)),
        el("section", {class: "card"}, el("div", {class: "head"}, el("h2", {}, "Log")), log),
        gallery({run: id}, "Films, exhibits and tables"));
    refresh();
    const forget = onChange(changed => changed.has(id) && refresh());
    return () => {
        forget();
        for (const chart of drawn.values())
            chart.destroy();
    };
}
