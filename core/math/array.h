// set: the same for all numbers of an array. On a GPU several are computed before the first of them is stored: what is stored may be what is read
// next, for all the compiler knows, and to wait for that, number after number, would be most of a step.
// no adjoint in this file: each loop is a part of an op, which knows its own
#pragma once
#include "../base/team.h"

CS_BEGIN

// A number that is known when this is compiled
template <int N> struct Size {
  static constexpr int n = N;
};

// no adjoint: see above.   N of them, from the k-th on
template <int N, class T, class Place, class F> CS_FN void set_some(T* y, int k, const Place& place, const F& f) {
  T x[N];
  CS_STRIP (int i = 0; i < N; i++) x[i] = f(k + i);
  CS_STRIP (int i = 0; i < N; i++) y[place(k + i)] = x[i];
}

// no adjoint: see above.   y[place(k)] = f(k) for n places that all differ; f may read y there, and nowhere else
template <class T, class Place, class F> CS_FN void set(T* y, int n, const Place& place, const F& f) {
  if constexpr (kTeam > 1) {
    share(n, [&](int k) { y[place(k)] = f(k); });
    return;
  }
#ifdef __CUDA_ARCH__
  int k = 0;
  for (; k + 4 <= n; k += 4) set_some<4>(y, k, place, f);
  if (n & 2) set_some<2>(y, k, place, f), k += 2;
  if (n & 1) set_some<1>(y, k, place, f);
#else
  for (int k = 0; k < n; k++) y[place(k)] = f(k);
#endif
}
// no adjoint: see above.   y[k] = f(k)
template <class T, class F> CS_FN void set(T* y, int n, const F& f) {
  set(y, n, [](int k) { return k; }, f);
}

// no adjoint: see above.   the same of rows: where these have fixed places, the compiler knows what differs, and all is unrolled
template <class T, class Place, class F> CS_FN void set_rows(T* y, int n, const Place& place, const F& f) {
#ifdef CS_FIXED_ROWS
  CS_FOR (int k = 0; k < n; k++) y[place(k)] = f(k);
#else
  set(y, n, place, f);
#endif
}
// no adjoint: see above
template <class T, class F> CS_FN void set_rows(T* y, int n, const F& f) {
  set_rows(y, n, [](int k) { return k; }, f);
}

CS_END
