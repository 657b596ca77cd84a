// Scores a CSV file with an exported model: onnxruntime in Node, nothing of priornet.
//
//     priornet export model/ --onnx model.onnx
//     cd examples/onnx_node && npm install --ignore-scripts
//     node score.mjs model.onnx new.csv > scored.csv

import { readFileSync } from "node:fs";
import * as ort from "onnxruntime-node";

const MISSING = new Set(["", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?", "-", "."]);

/** The rows of a CSV file, as arrays of texts; quoted values may hold commas and line breaks. */
function parseCsv(text) {
  const rows = [[""]];
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    const row = rows[rows.length - 1];
    if (quoted && c === '"' && text[i + 1] === '"') row[row.length - 1] += text[i++];
    else if (c === '"') quoted = !quoted;
    else if (!quoted && c === ",") row.push("");
    else if (!quoted && c === "\n") rows.push([""]);
    else if (quoted || c !== "\r") row[row.length - 1] += c;
  }
  return rows.filter((row) => row.length > 1 || row[0] !== "");
}

/** A number, true or false as 1 or 0, a date as days since 1970; NaN where there is none. */
function number(text) {
  const word = text.trim().toLowerCase();
  if (MISSING.has(word)) return NaN;
  if (word === "true" || word === "false") return word === "true" ? 1 : 0;
  const value = Number(word.replace(",", ".")); // a decimal comma
  if (!Number.isNaN(value)) return value;
  const iso = word.toUpperCase().replace(" ", "T");
  const zoned = /(Z|[+-]\d\d:?\d\d)$/.test(iso) || !iso.includes("T") ? iso : `${iso}Z`;
  const moment = Date.parse(zoned);
  if (Number.isNaN(moment)) throw new Error(`"${text}" is neither a number nor a date`);
  return moment / 86400000;
}

const [model, data] = process.argv.slice(2);
const [header, ...rows] = parseCsv(readFileSync(data, "utf8").replace(/^\uFEFF/, ""));
const session = await ort.InferenceSession.create(model);
const fed = {};
for (const { name, type } of session.inputMetadata) {
  const texts = rows.map((row) => row[header.indexOf(name)]);
  fed[name] = // one input per raw column, of shape (rows, 1)
    type === "string"
      ? new ort.Tensor("string", texts.map((text) => text.trim()), [rows.length, 1])
      : new ort.Tensor("float64", Float64Array.from(texts, number), [rows.length, 1]);
}
const scores = await session.run(fed);
const columns = session.outputNames.flatMap((name) => {
  const { data: values, dims } = scores[name];
  const width = dims[1] ?? 1;
  return Array.from({ length: width }, (_, k) => ({
    title: width === 1 ? name : `${name}_${k}`,
    value: (row) => values[row * width + k],
  }));
});
console.log(columns.map((column) => column.title).join(","));
for (let row = 0; row < rows.length; row++) {
  console.log(columns.map((column) => column.value(row)).join(","));
}
