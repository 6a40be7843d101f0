// The runs as the server knows them, kept up to date by asking every two seconds for what has changed
// since the last answer. A page that is hidden does not ask.

export const runs = new Map(); // by number
export let roots = [];
let version = 0;
const listeners = new Set();

export function onChange(listener) {
    listeners.add(listener);
    return () => listeners.delete(listener);
}

export async function ask(path, parameters = {}) {
    const query = new URLSearchParams(parameters).toString();
    const answer = await fetch(path + (query ? "?" + query : ""));
    if (!answer.ok)
        throw new Error((await answer.text()).trim() || `status ${answer.status}`);
    return (answer.headers.get("Content-Type") || "").startsWith("application/json")
        ? answer.json() : answer.text();
}

// One question; tells the listeners which runs have changed.
async function update() {
    const answer = await ask("/api/runs", version ? {since: version} : {});
    roots = answer.roots;
    const changed = new Set();
    for (const run of answer.runs) {
        changed.add(run.id);
        if (run.gone)
            runs.delete(run.id);
        else
            runs.set(run.id, run);
    }
    const first = version === 0;
    version = answer.version;
    if (changed.size || first)
        for (const listener of [...listeners])
            listener(changed);
}

// Asks for ever; `report` hears whether the server answers.
export function keepUpToDate(report) {
    let timer = null;
    async function tick() {
        clearTimeout(timer);
        try {
            await update();
            report(true);
        } catch (fault) {
            report(false, fault);
        }
        if (!document.hidden)
            timer = setTimeout(tick, 2000);
    }
    document.addEventListener("visibilitychange", () => document.hidden ? clearTimeout(timer) : tick());
    return tick();
}
