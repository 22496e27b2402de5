// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

/** Compiles a pair of shaders, and describes the layout of their attributes. */

import type { Camera } from './camera';

export class Program {
  readonly #program: WebGLProgram;
  readonly #uniforms = new Map<string, WebGLUniformLocation | null>();

  constructor(readonly gl: WebGL2RenderingContext, vertex: string, fragment: string) {
    this.#program = gl.createProgram()!;
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]] as const) {
      const shader = gl.createShader(kind)!;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader) ?? 'shader');
      gl.attachShader(this.#program, shader);
    }
    gl.linkProgram(this.#program);
    if (!gl.getProgramParameter(this.#program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(this.#program) ?? 'program');
  }

  at(name: string): WebGLUniformLocation | null {
    let location = this.#uniforms.get(name);
    if (location === undefined) this.#uniforms.set(name, (location = this.gl.getUniformLocation(this.#program, name)));
    return location;
  }

  use(camera: Camera, scale: number, canvas: HTMLCanvasElement): void {
    this.gl.useProgram(this.#program);
    this.gl.uniform3f(this.at('camera'), camera.x, camera.y, scale);
    this.gl.uniform2f(this.at('view'), canvas.width, canvas.height);
  }
}

export function attribute(gl: WebGL2RenderingContext, at: number, size: number, type: number, normalized: boolean, stride: number, offset: number): void {
  gl.enableVertexAttribArray(at);
  gl.vertexAttribPointer(at, size, type, normalized, stride, offset);
}
