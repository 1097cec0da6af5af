// The CSS variable of a colour by its name; its values for light and dark are in measures.css.
export function colourOf(token: string): string {
  return `var(--measure-${token})`;
}
