// A canvas over a plot: sharp on any screen, as large as the box it lies in.

/** Marks by group: colour alone does not tell them apart for everyone. */
const SHAPES = ["circle", "square", "diamond", "up", "down", "cross", "pentagon", "left", "right", "hexagon", "circle"];

export function surface(box, name) {
  const canvas = document.createElement("canvas");
  canvas.className = name;
  canvas.setAttribute("aria-hidden", "true");
  box.append(canvas);
  return canvas;
}

/** The canvas ready to be drawn on, cleared, in units of CSS pixels. */
export function fresh(canvas) {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const density = Math.min(window.devicePixelRatio || 1, 2);
  if (canvas.width !== Math.round(width * density) || canvas.height !== Math.round(height * density)) {
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(density, 0, 0, density, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

function corners(count, radius, turn) {
  return Array.from({ length: count }, (_, i) => [radius * Math.cos(turn + (2 * Math.PI * i) / count), radius * Math.sin(turn + (2 * Math.PI * i) / count)]);
}

/** The outline of a mark around (x, y). */
export function outline(pen, shape, x, y, radius) {
  if (shape === "circle") {
    pen.moveTo(x + radius, y);
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  let points;
  if (shape === "square") points = corners(4, radius * 1.2, Math.PI / 4);
  else if (shape === "diamond") points = corners(4, radius * 1.3, 0);
  else if (shape === "up") points = corners(3, radius * 1.4, -Math.PI / 2);
  else if (shape === "down") points = corners(3, radius * 1.4, Math.PI / 2);
  else if (shape === "left") points = corners(3, radius * 1.4, Math.PI);
  else if (shape === "right") points = corners(3, radius * 1.4, 0);
  else if (shape === "pentagon") points = corners(5, radius * 1.2, -Math.PI / 2);
  else if (shape === "hexagon") points = corners(6, radius * 1.15, 0);
  else points = [[-1, -0.4], [-0.4, -0.4], [-0.4, -1], [0.4, -1], [0.4, -0.4], [1, -0.4], [1, 0.4], [0.4, 0.4], [0.4, 1], [-0.4, 1], [-0.4, 0.4], [-1, 0.4]].map(([a, b]) => [a * radius * 1.25, b * radius * 1.25]);
  points.forEach(([dx, dy], i) => (i ? pen.lineTo(x + dx, y + dy) : pen.moveTo(x + dx, y + dy)));
  pen.closePath();
}

export function shapeOf(slot) {
  return SHAPES[slot] ?? "circle";
}

/** A mark painted once, to be stamped many times: thousands of outlines cost more than thousands of copies. */
export function stamp(shape, radius, fill, edge) {
  const density = Math.min(window.devicePixelRatio || 1, 2);
  const half = Math.ceil(radius * 1.5 + 2);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = half * 2 * density;
  const pen = canvas.getContext("2d");
  pen.scale(density, density);
  pen.beginPath();
  outline(pen, shape, half, half, radius);
  pen.fillStyle = fill;
  pen.fill();
  if (edge) {
    pen.lineWidth = 1.2;
    pen.strokeStyle = edge;
    pen.stroke();
  }
  return { canvas, half };
}

export function press(pen, mark, x, y) {
  pen.drawImage(mark.canvas, x - mark.half, y - mark.half, mark.half * 2, mark.half * 2);
}

/** Calls `picked` for a press that did not become a drag. */
export function onPress(box, picked) {
  let start = null;
  box.addEventListener("pointerdown", (event) => { start = [event.clientX, event.clientY]; }, true);
  window.addEventListener("pointerup", (event) => {
    if (start && Math.hypot(event.clientX - start[0], event.clientY - start[1]) < 5) picked(event);
    start = null;
  }, true);
}
