/** The signed bars of a derivation on a canvas: one band per row, one column per element. */

const HEADER_HEIGHT = 22;
const BAR_HEIGHT = 46;
const NUMBER_HEIGHT = 16;
const BAND_GAP = 16;
const WIDEST_COLUMN = 72;
const NUMBER_COLUMN = 44;
const NUMBERED_ELEMENTS = 16;

/** Sizes in pixels for `count` elements in `available` pixels; few elements are wide enough for their numbers. */
function measureBars(count, rowCount, available) {
  const narrowest = count <= NUMBERED_ELEMENTS ? NUMBER_COLUMN : count <= 256 ? 6 : 3;
  const column = Math.min(WIDEST_COLUMN, Math.max(narrowest, available / Math.max(1, count)));
  const hasNumbers = column >= NUMBER_COLUMN;
  const band = BAR_HEIGHT + (hasNumbers ? NUMBER_HEIGHT : 0);
  const header = hasNumbers ? HEADER_HEIGHT : 4;
  return {
    column,
    hasNumbers,
    header,
    band,
    width: column * count,
    height: header + rowCount * (band + BAND_GAP),
    bandTop: (row) => header + row * (band + BAND_GAP),
  };
}

/** Lowest and highest finite value of a row, with zero always between. */
function rangeOf(values) {
  let low = 0;
  let high = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return { low, high, span: high - low || 1 };
}

/** Paint the columns that are in view. */
function paintBars(context, picture, view) {
  const { sizes, rows } = picture;
  const first = Math.max(0, Math.floor(view.left / sizes.column));
  const last = Math.min(picture.count - 1, Math.ceil((view.left + view.width) / sizes.column));
  context.clearRect(0, 0, view.width, sizes.height);
  context.save();
  context.translate(-view.left, 0);
  if (picture.active !== null) paintActive(context, picture);
  if (picture.focus !== null) paintFocus(context, picture);
  if (sizes.hasNumbers) paintHeader(context, picture, first, last);
  rows.forEach((row, index) => paintBand(context, picture, row, sizes.bandTop(index), first, last));
  context.restore();
}

/** The column under the pointer, through all rows. */
function paintActive(context, { sizes, active, theme }) {
  context.globalAlpha = sizes.column < 12 ? 0.35 : 0.1;
  context.fillStyle = theme.text;
  context.beginPath();
  context.roundRect(active * sizes.column, 0, Math.max(2, sizes.column), sizes.height - BAND_GAP / 2, 4);
  context.fill();
  context.globalAlpha = 1;
}

/** A frame around the element that the number belongs to. */
function paintFocus(context, { sizes, focus, theme }) {
  context.strokeStyle = theme.text;
  context.lineWidth = 1.5;
  context.beginPath();
  context.roundRect(focus * sizes.column + 1, 1, Math.max(3, sizes.column - 2), sizes.height - BAND_GAP / 2 - 2, 4);
  context.stroke();
  context.lineWidth = 1;
}

/** The names of the elements over their columns. */
function paintHeader(context, { sizes, labels, theme }, first, last) {
  context.fillStyle = theme.roles.neutral;
  context.font = `11px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let index = first; index <= last; index += 1) {
    const label = fitText(context, labels[index], sizes.column - 6);
    context.fillText(`\u2068${label}\u2069`, (index + 0.5) * sizes.column, HEADER_HEIGHT / 2);
  }
}

/** The text, cut with an ellipsis where it is wider than `width`. */
function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const characters = [...new Intl.Segmenter().segment(text)].map((part) => part.segment);
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > width) characters.pop();
  return `${characters.join("")}…`;
}

/** One row: its zero line, its bars, its numbers. */
function paintBand(context, picture, row, top, first, last) {
  const { sizes, theme, blocked } = picture;
  const zero = top + (row.range.high / row.range.span) * BAR_HEIGHT;
  context.fillStyle = theme.roles.neutral;
  context.globalAlpha = 0.5;
  context.fillRect(first * sizes.column, Math.round(zero) - 0.5, (last - first + 1) * sizes.column, 1);
  context.globalAlpha = 1;
  for (let index = first; index <= last; index += 1) {
    if (blocked[index]) paintHatching(context, picture, index, top);
    else paintBar(context, picture, row, index, zero);
  }
  if (sizes.hasNumbers) paintNumbers(context, picture, row, top, first, last);
}

/** One bar from the zero line to its value. */
function paintBar(context, { sizes, theme }, row, index, zero) {
  const value = row.values[index];
  if (!Number.isFinite(value)) return;
  const width = Math.min(28, Math.max(1.5, sizes.column * 0.72));
  const height = (Math.abs(value) / row.range.span) * BAR_HEIGHT;
  const x = (index + 0.5) * sizes.column - width / 2;
  context.fillStyle = theme.roles[row.role];
  context.globalAlpha = value < 0 ? 0.6 : 1;
  context.fillRect(x, value < 0 ? zero : zero - height, width, Math.max(height, value === 0 ? 0 : 0.75));
  context.globalAlpha = 1;
}

/** Diagonal lines where a mask blocks the element. */
function paintHatching(context, { sizes, theme }, index, top) {
  const left = index * sizes.column + Math.min(3, sizes.column * 0.15);
  const width = sizes.column - 2 * Math.min(3, sizes.column * 0.15);
  context.save();
  context.beginPath();
  context.rect(left, top, width, BAR_HEIGHT);
  context.clip();
  context.strokeStyle = theme.hatch;
  context.beginPath();
  for (let offset = -BAR_HEIGHT; offset < width; offset += 6) {
    context.moveTo(left + offset, top + BAR_HEIGHT);
    context.lineTo(left + offset + BAR_HEIGHT, top);
  }
  context.stroke();
  context.restore();
}

/** The values under the bars. */
function paintNumbers(context, { sizes, theme }, row, top, first, last) {
  context.font = `11.5px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = theme.text;
  for (let index = first; index <= last; index += 1) {
    const text = formatNumber(row.values[index], "f2");
    context.fillText(text, (index + 0.5) * sizes.column, top + BAR_HEIGHT + NUMBER_HEIGHT / 2 + 2);
  }
}
