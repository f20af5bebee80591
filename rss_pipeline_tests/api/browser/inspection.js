// What is wrong with the bodies of items on the page that is open, and what is beside them.
forbidden => {
  const bodies = [...document.querySelectorAll('.body')];
  const inside = bodies.flatMap(body => [...body.querySelectorAll('*')]);
  const ours = new Set(['image-link', 'unsized', 'scrolls', 'embedded video', 'embedded audio']);
  const wrong = [];
  for (const each of inside) {
    if (each.matches(forbidden)) wrong.push(each.tagName);
    for (const { name, value } of each.attributes) {
      const isPlayer = each.matches('a.embedded') && (name === 'data-frame' || name === 'data-origin');
      if (/^on|^style$|^name$|^srcset$|^data-|^form|^xlink/.test(name) && !isPlayer) wrong.push(`${each.tagName} ${name}`);
      if (name === 'data-frame' && !/^https:\/\/(www\.youtube-nocookie|player\.vimeo|open\.spotify)\.com\//.test(value)) wrong.push(value);
      if (name === 'id' && !/^user-content-[0-9a-f]{8}-/.test(value)) wrong.push(`id ${value}`);
      if (each instanceof SVGElement && name === 'href' && !value.startsWith('#user-content-')) wrong.push(value);
      if (each instanceof SVGElement && /url\(/.test(value) && !/^url\(#user-content-[\w.-]+\)$/.test(value)) wrong.push(value);
      if (name === 'class' && !ours.has(value)) wrong.push(`class ${value}`);
      if (/^(href|src|poster)$/.test(name) && !/^(https?|mailto):/.test(new URL(value, location).href)) wrong.push(value);
    }
    if (each.tagName === 'A' && each.hasAttribute('href') && !/noopener noreferrer/.test(each.rel)) wrong.push(each.outerHTML);
    if (each.shadowRoot) wrong.push('a shadow');
  }
  // Whatever the browser draws of an item is within its article.
  const edges = bodies.map(body => body.getBoundingClientRect());
  const within = (x, y) => edges.some(box => x >= box.left - 1 && x <= box.right + 1 && y >= box.top - 1 && y <= box.bottom + 1);
  let points = 0;
  for (let x = 2; x < innerWidth; x += 61) for (let y = 2; y < innerHeight; y += 43) {
    const found = document.elementFromPoint(x, y);
    points += 1;
    if (found && found.closest('.body') && !within(x, y)) wrong.push(`${found.tagName} at ${x}, ${y}`);
  }
  const main = document.querySelector('main').getBoundingClientRect();
  for (const box of edges) if (box.left < main.left - 1 || box.right > main.right + 1) wrong.push('wider than its column');
  if (document.documentElement.scrollWidth > innerWidth) wrong.push('the page scrolls sideways');
  for (const each of document.querySelectorAll('.top a, .top input')) {
    const box = each.getBoundingClientRect();
    if (!box.width || box.top > innerHeight) continue;
    const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    if (!hit || hit.closest('.body')) wrong.push(`${each.textContent} is covered`);
  }
  return { wrong: wrong.slice(0, 20), ran: Boolean(window.ran), bodies: bodies.length, points, inside: inside.length,
    footers: document.querySelectorAll('.foot').length, says: document.querySelectorAll('body > #say').length };
}
