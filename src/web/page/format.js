// Numbers, times and states as text, and elements without innerHTML: whatever a run is called or
// says is text, never markup.

// An element: el("a", {href: "#/"}, "text", child). Properties of the form on... are listeners.
export function el(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false)
            continue;
        if (key.startsWith("on"))
            node.addEventListener(key.slice(2), value);
        else
            node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter(c => c !== null && c !== undefined));
    return node;
}

export function number(v) {
    if (v === null || v === undefined)
        return "\u2013";
    const size = Math.abs(v);
    if (v !== 0 && (size < 0.001 || size >= 1e7))
        return v.toExponential(2);
    if (size >= 1000)
        return Math.round(v).toLocaleString("en");
    return String(+v.toPrecision(4));
}

export function duration(seconds) {
    if (seconds === null || seconds === undefined)
        return "\u2013";
    if (seconds < 60)
        return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
    if (seconds < 3600)
        return `${Math.floor(seconds / 60)} min`;
    if (seconds < 86400)
        return `${Math.floor(seconds / 3600)} h ${String(Math.floor(seconds % 3600 / 60)).padStart(2, "0")} min`;
    return `${Math.floor(seconds / 86400)} d ${Math.floor(seconds % 86400 / 3600)} h`;
}

// States in the order of interest, each with a mark that tells it from the others without colour.
export const STATES = {
    running: "\u25B6", done: "\u2713", failed: "\u2715", diverged: "\u2197",
    stopped: "\u25A0", interrupted: "\u23F8", begun: "\u25CB",
};

export function stateBadge(run) {
    return el("span", {class: `state ${run.state}`, title: run.why || null},
              el("span", {class: "mark", "aria-hidden": "true"}, STATES[run.state] ?? "?"), run.state);
}

// The last part of a path, and what is before it.
export function splitPath(path) {
    const at = path.lastIndexOf("/");
    return at < 0 ? ["", path] : [path.slice(0, at), path.slice(at + 1)];
}
