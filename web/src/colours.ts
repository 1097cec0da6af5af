// The colour of a token; its values for light and dark stand in measures.css.
export function colourOf(token: string): string {
  return `var(--measure-${token})`;
}
