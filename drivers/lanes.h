// Between arrays of worlds and packs: load and store, worlds beyond the last one repeat it and are never stored.
#pragma once
#include "../core/data/trace.h"
#include "kernels.h"

CS_BEGIN

// The worlds of one pack
struct Group {
  long pack, first;
  int count;  // lanes that are real worlds
};

template <class T> CS_OP Group group(long pack, long worlds) {
  long first = pack * lanes<T>, left = worlds - first;
  return {pack, first, int(left < lanes<T> ? left : lanes<T>)};
}

template <class T, class E> CS_OP void load(const Array<E>& a, Group g, int n, T* out, long step = 0) {
  const E* row = a.data + step * a.time + g.first * a.stride;
  if (a.stride == 0 || lanes<T> == 1) {
    share(n, [&](int i) { out[i] = T(row[i]); });
    return;
  }
  E* to = reinterpret_cast<E*>(out);
  for (int l = 0; l < lanes<T>; l++) {
    const E* from = row + (l < g.count ? l : g.count - 1) * a.stride;
    for (int i = 0; i < n; i++) to[i * lanes<T> + l] = from[i];
  }
}

template <class T, class E> CS_OP void store(const Array<E>& a, Group g, int n, const T* x, long step = 0) {
  const E* from = reinterpret_cast<const E*>(x);
  for (int l = 0; l < g.count; l++) {
    E* to = a.data + step * a.time + (g.first + l) * a.stride;
    share(n, [&](int i) { to[i] = from[i * lanes<T> + l]; });
  }
}

// A bar: stored per world, or for a shared input summed over the pack's lanes in order. keep[l] false: a lane that counts for nothing
template <class T, class E> CS_OP void store_bar(const Array<E>& a, Group g, int n, const T* x, const bool* keep, long step = 0) {
  const E* from = reinterpret_cast<const E*>(x);
  if (a.partial) {
    E* sum = a.partial + g.pack * n;
    share(n, [&](int i) {
      E s = 0;
      for (int l = 0; l < g.count; l++) s += keep[l] ? from[i * lanes<T> + l] : E(0);
      sum[i] = s;
    });
    return;
  }
  for (int l = 0; l < g.count; l++) {
    E* to = a.data + step * a.time + (g.first + l) * a.stride;
    share(n, [&](int i) { to[i] = keep[l] ? from[i * lanes<T> + l] : E(0); });
  }
}

template <class T> CS_OP void clear(T* x, int n) {
  share(n, [&](int i) { x[i] = T(0); });
}
template <class T> CS_OP void clear(Vec3<T>* x, int n) {
  share(n, [&](int i) { x[i] = zero3<T>(); });
}

CS_END
