// The legend of a picture: what its colors and marks mean.
export function Legend({ keys }: { keys: [look: string, word: string][] }) {
  return (
    <p class="legend" aria-hidden="true">
      {keys.map(([look, word]) => (
        <span key={look} class="entry">
          <span class={`key ${look}`} /> {word}
        </span>
      ))}
    </p>
  );
}
