// The CSS variable of a color by its name; its values for light and dark are in measures.css.
export function colorOf(token: string): string {
  return `var(--measure-${token})`;
}
