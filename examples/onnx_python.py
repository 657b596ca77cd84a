"""Score a CSV file with an exported model: onnxruntime and NumPy, nothing of priornet.

priornet export model/ --onnx model.onnx
python examples/onnx_python.py model.onnx new.csv > scored.csv
"""

import csv
import sys
from datetime import UTC, datetime

import numpy as np
import onnxruntime

MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?", "-", "."}


def number(text):
    """A number, true or false as 1 or 0, a date as days since 1970; nan where there is none."""
    word = text.strip().lower()
    if word in MISSING:
        return np.nan
    if word in ("true", "false"):
        return float(word == "true")
    try:
        return float(word.replace(",", ".", 1))  # a decimal comma
    except ValueError:
        moment = datetime.fromisoformat(word.upper())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / 86400


def main(model, data):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with open(data, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    fed = {}
    for column in session.get_inputs():  # one per raw column, of shape (rows, 1)
        texts = [row[column.name] for row in rows]
        is_text = column.type == "tensor(string)"
        values = [text.strip() if is_text else number(text) for text in texts]
        fed[column.name] = np.array(values, object if is_text else np.float64).reshape(-1, 1)
    names = [output.name for output in session.get_outputs()]
    # (rows,) or (rows, targets): columns, also where there are no rows
    scores = [values[:, None] if values.ndim == 1 else values for values in session.run(None, fed)]
    writer = csv.writer(sys.stdout)
    writer.writerow(
        name if values.shape[1] == 1 else f"{name}_{k}"
        for name, values in zip(names, scores, strict=True)
        for k in range(values.shape[1])
    )
    writer.writerows(np.concatenate(scores, axis=1).tolist())


if __name__ == "__main__":
    main(*sys.argv[1:])
