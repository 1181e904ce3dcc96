// Rates, from what a number was over the last half minute; and what is drawn of the last minutes.

const WINDOW_S = 30;
const LEAST_S = 1.5;
const SPARK_POINTS = 150;

export class Rates {
  #samples = new Map();

  // A number that goes back begins anew: its instance was started again, or its topic made anew.
  note(key, value, at) {
    if (value === null || value === undefined) return;
    let samples = this.#samples.get(key);
    if (!samples || samples.at(-1)[1] > value) this.#samples.set(key, (samples = []));
    if (samples.length && samples.at(-1)[0] === at) samples.pop();
    samples.push([at, value]);
    // One sample older than the window stays: a difference is over the whole of it.
    while (samples.length > 2 && samples[1][0] <= at - WINDOW_S) samples.shift();
  }

  // In a second; null: not seen for long enough.
  of(key) {
    const samples = this.#samples.get(key);
    if (!samples || samples.length < 2) return null;
    const [[begin, first], [end, last]] = [samples[0], samples.at(-1)];
    return end - begin < LEAST_S ? null : (last - first) / (end - begin);
  }

  // How much more it is than half a minute ago, or than when it was first seen.
  more(key) {
    const samples = this.#samples.get(key);
    return samples && samples.length > 1 ? samples.at(-1)[1] - samples[0][1] : null;
  }

  seconds(key) {
    const samples = this.#samples.get(key) ?? [];
    return samples.length > 1 ? samples.at(-1)[0] - samples[0][0] : 0;
  }

  forgetOthers(keys) {
    for (const key of this.#samples.keys()) if (!keys.has(key)) this.#samples.delete(key);
  }
}

export class Course {
  #values = [];

  add(value) {
    if (value === null || value === undefined) return;
    this.#values.push(value);
    if (this.#values.length > SPARK_POINTS) this.#values.shift();
  }

  // Points of a line in a box of 100 by 20.
  points() {
    const values = this.#values;
    const most = Math.max(...values, 1e-9);
    const step = 100 / Math.max(values.length - 1, 1);
    return values.map((value, number) => `${(number * step).toFixed(1)},${(19 - (value / most) * 18).toFixed(1)}`).join(" ");
  }

  get length() {
    return this.#values.length;
  }
}
