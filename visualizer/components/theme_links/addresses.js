/** The theme that an address names, "" for none. `themes` are [value, name] pairs. */
export function themeIn(address, parameter, themes) {
  const given = new URL(address).searchParams.getAll(parameter);
  return themes.map(([value]) => value).find((value) => value && given.includes(value)) ?? "";
}

/** The address with another theme, "" for none; other values of the parameter stay. */
export function addressWith(address, parameter, themes, theme) {
  const url = new URL(address);
  const values = themes.map(([value]) => value);
  const others = url.searchParams.getAll(parameter).filter((value) => !values.includes(value));
  url.searchParams.delete(parameter);
  for (const value of theme ? [...others, theme] : others) url.searchParams.append(parameter, value);
  return url.href;
}
