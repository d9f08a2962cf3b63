/** Numbers of the picture as words. */

import { withMinusSign } from "../shared/payload.js";
import { textsOf } from "../shared/texts.js";

const say = textsOf("token_way/words");
const TIE = 0.02; // of the largest: heads whose norms are no further apart look alike

/** "31%", "−4%". @param {number} share */
export function percent(share) {
  return `${withMinusSign(String(Math.round(100 * share) || 0))}%`; // -0 is 0
}

/** A probability, which is never written as nothing or as everything unless it is. @param {number} probability */
export function chance(probability) {
  if (probability > 0 && probability < 0.005) return say("unlikely");
  return probability >= 0.995 && probability < 1 ? say("certain") : percent(probability);
}

/** A norm with as few digits as tell it from others. @param {number} norm */
export function shortNorm(norm) {
  if (norm > 0 && norm < 0.005) return "<0.01";
  return norm.toFixed(norm < 9.995 ? 2 : norm < 99.95 ? 1 : 0);
}

/** The head that writes more than every other; null where several write as much. @param {any[]} parts */
export function strongest(parts) {
  const [first, second] = parts.filter(({ head }) => head !== null).sort((a, b) => b.norm - a.norm);
  return first && !(second?.norm >= (1 - TIE) * first.norm) ? first : null;
}
