// The one door to the library that draws pages.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";
import { Component, createElement, render } from "./vendor/preact.js";

export const html = htm.bind(createElement);
export { Component, render, useEffect, useLayoutEffect, useMemo, useRef, useState };
