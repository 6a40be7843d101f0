// Lines with bands, drawn by uPlot. Groups of one method are told apart by dash as well as by colour, and
// each group has an entry below the chart with its newest value, or the one under the pointer.

import uPlot from "./uPlot.esm.js";
import {el, number} from "./format.js";
import {colour, onTheme} from "./theme.js";

// After Okabe and Ito: colours that colour-blind readers can distinguish; the first two are OPC's and
// MBPO's in all figures of opc.
const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7f5fc4", "#7a7a7a"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

// On a dark ground the dark colours are made lighter.
function visible(hex) {
    if (document.documentElement.dataset.theme !== "dark")
        return hex;
    const channel = i => Math.round(parseInt(hex.slice(i, i + 2), 16) * 0.72 + 255 * 0.28);
    return `rgb(${channel(1)} ${channel(3)} ${channel(5)})`;
}

function faded(c) {
    return c.startsWith("#") ? c + "2e" : c.replace(")", " / 20%)");
}

// Gives each group a colour and a dash. The first group of a method has its method's colour and a whole line,
// as in opc plot; further ones have a dash, and the next colour of the palette that is no method's here.
function styleGroups(groups) {
    const used = new Set(groups.map(g => g.colour)), ofMethod = new Map();
    return groups.map((group, i) => {
        const before = ofMethod.get(group.colour) ?? 0;
        ofMethod.set(group.colour, before + 1);
        let c = before === 0 && group.colour ? group.colour : null;
        c = c ?? PALETTE.find(p => !used.has(p)) ?? PALETTE[i % PALETTE.length];
        used.add(c);
        return {...group, stroke: visible(c), dash: DASHES[before % DASHES.length]};
    });
}

function swatch(group) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("width", 30);
    svg.setAttribute("height", 12);
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [key, value] of Object.entries({x1: 0, x2: 30, y1: 6, y2: 6, stroke: group.stroke,
                                               "stroke-width": 2.5, "stroke-dasharray": group.dash.join(" ")}))
        line.setAttribute(key, value);
    svg.append(line);
    return svg;
}

// A chart that can be given new groups: [{label, x, middle, low, high, colour}], where low and high may
// be missing; single: the band is within one run. title and axis labels are texts.
export class Chart {
    constructor(title, xLabel, height = 260) {
        this.height = height;
        this.xLabel = xLabel;
        this.plot = null;
        this.box = el("div");
        this.legend = el("ul", {class: "legend"});
        this.node = el("section", {class: "chart"}, el("h3", {}, title), this.box, this.legend);
        this.groups = [];
        this.sizes = new ResizeObserver(() => this.resize());
        this.sizes.observe(this.box);
        this.forget = onTheme(() => this.draw());
    }

    destroy() {
        this.sizes.disconnect();
        this.forget();
        this.plot?.destroy();
    }

    resize() {
        const width = this.box.clientWidth;
        if (this.plot && width > 0 && width !== this.plot.width)
            this.plot.setSize({width, height: this.height});
        else if (!this.plot && width > 0)
            this.draw();
    }

    set(groups) {
        this.groups = groups;
        this.draw();
    }

    axis(extra) {
        return {stroke: colour("soft"), grid: {stroke: colour("rule"), width: 1}, ticks: {show: false},
                font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", ...extra};
    }

    draw() {
        const width = this.box.clientWidth;
        if (width === 0)
            return; // not in the document yet; resize comes when it is
        const groups = styleGroups(this.groups);
        const tables = [], series = [{}], bands = [];
        for (const g of groups) {
            const banded = g.low && g.high && g.runs > 1;
            tables.push(banded ? [g.x, g.middle, g.high, g.low] : [g.x, g.middle]);
            series.push({label: g.label, stroke: g.stroke, width: 2, dash: g.dash, spanGaps: true,
                         points: {show: g.x.length < 2, size: 7, fill: g.stroke}});
            if (banded) {
                bands.push({series: [series.length, series.length + 1], fill: faded(g.stroke)});
                for (let k = 0; k < 2; k++)
                    series.push({stroke: "transparent", width: 0, spanGaps: true, points: {show: false}});
            }
            g.index = series.length - (banded ? 3 : 1);
        }
        this.plot?.destroy();
        this.plot = null;
        this.box.replaceChildren();
        if (tables.length)
            this.plot = new uPlot({
                width, height: this.height, series, bands, legend: {show: false},
                cursor: {drag: {x: true, y: false}, points: {size: 6}},
                scales: {x: {time: false}},
                axes: [this.axis({label: this.xLabel, labelSize: 22, size: 34,
                                  values: (u, ticks) => ticks.map(t => t >= 1e4 ? `${+(t / 1000).toPrecision(4)}k` : `${+t.toPrecision(6)}`)}),
                       this.axis({size: 58, values: (u, ticks) => ticks.map(number)})],
                hooks: {setCursor: [u => this.showValues(groups, u.cursor.idx)]},
            }, tables.length > 1 ? uPlot.join(tables) : tables[0], this.box);
        this.legend.replaceChildren(...groups.map(g => {
            g.value = el("b");
            return el("li", {}, swatch(g), `${g.label}${g.runs > 1 && !g.single ? ` (${g.runs} runs)` : ""}`, g.value);
        }));
        this.showValues(groups, null);
    }

    // The values at a place of the horizontal axis; null: the newest.
    showValues(groups, at) {
        for (const g of groups) {
            const values = at === null || at === undefined || !this.plot ? g.middle : this.plot.data[g.index].slice(0, at + 1);
            let i = values.length - 1;
            while (i >= 0 && (values[i] === null || values[i] === undefined))
                i--;
            if (g.value)
                g.value.textContent = i < 0 ? "" : number(values[i]);
        }
    }
}
