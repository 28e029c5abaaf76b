"""pandas, NumPy and CuPy have the same method names; a torch linter leaves them alone."""
import numpy as np
import pandas as pd


def summarise(frame: pd.DataFrame, steps: int):
    rows = []
    for step in range(steps):
        part = frame[frame["step"] == step]  # ok: pandas
        if part.empty or (part["loss"] > 10).any():  # ok: pandas
            continue
        loss = part["loss"].mean().item()  # ok: NumPy scalar
        values = part["loss"].to_numpy()  # ok: pandas
        values[values > 1] *= 0.5  # ok: NumPy
        best = int(values.argmin())  # ok: NumPy
        rows.append((step, loss, values[best], np.unique(values).tolist()))  # ok: NumPy
    table = np.array(rows, dtype=object)
    return table[np.nonzero(table[:, 1])[0]], f"{len(rows)} rows of {frame.shape}"  # ok: NumPy
