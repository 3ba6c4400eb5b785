// The types of what the page uses of preact-htm.js.
type Cleanup = void | (() => void);
export const html: (strings: TemplateStringsArray, ...values: any[]) => any;
export function render(vnode: any, parent: Element): void;
export function useState<T>(initial: T | (() => T)): [T, (next: T | ((old: T) => T)) => void];
export function useEffect(fn: () => Cleanup, keys?: any[]): void;
export function useLayoutEffect(fn: () => Cleanup, keys?: any[]): void;
export function useMemo<T>(fn: () => T, keys?: any[]): T;
export function useCallback<T>(fn: T, keys?: any[]): T;
export function useRef<T>(initial: T): { current: T };
