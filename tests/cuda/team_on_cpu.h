// The threads of a team, core/base/team.h, one after the other on the CPU: each has a stack and a copy of the scratch of its own, and runs until it waits for
// the others. Once all wait what any of them has written is in all copies; where they only tell each other a number it is not.
#pragma once
#include <ucontext.h>

#include <cstring>
#include <functional>
#include <vector>

#include "../../core/base/scalar.h"

CS_BEGIN

constexpr int kTeam = CS_TEAM;

enum { kWait, kOfRank, kLargest, kHowMany };

struct Team {
  static constexpr size_t kStack = size_t(1) << 20;
  ucontext_t home, own[kTeam];
  std::vector<unsigned char> stack[kTeam], copy[kTeam], before, scratch;  // the one that is there while a thread runs
  std::function<void(void*)> work;
  double told[2][kTeam];  // of this round, and of the one before
  int rank = 0, round = 0, place[kTeam];
  bool ended[kTeam];
};
inline Team team;

// runs f(scratch) by all threads.   Returns what they do that threads of a team must not, or null
inline const char* team_runs(size_t bytes, const std::function<void(void*)>& f) {
  team.work = f, team.before.assign(bytes, 0), team.scratch.resize(bytes);
  for (int r = 0; r < kTeam; r++) {
    team.stack[r].resize(Team::kStack), team.copy[r] = team.before, team.ended[r] = false;
    getcontext(&team.own[r]);
    team.own[r].uc_stack = {team.stack[r].data(), 0, Team::kStack}, team.own[r].uc_link = &team.home;
    makecontext(&team.own[r], [] { team.work(team.scratch.data()), team.ended[team.rank] = true; }, 0);
  }
  do {
    for (team.rank = 0; team.rank < kTeam; team.rank++) {
      std::memcpy(team.scratch.data(), team.copy[team.rank].data(), bytes);
      swapcontext(&team.home, &team.own[team.rank]);
      std::memcpy(team.copy[team.rank].data(), team.scratch.data(), bytes);
    }
    for (int r = 1; r < kTeam; r++)
      if (team.ended[r] != team.ended[0] || (!team.ended[r] && team.place[r] != team.place[0]))
        return "they wait in different places";
    team.round ^= 1;
    if (!team.ended[0] && team.place[0] != kWait) continue;
    std::vector<unsigned char> after = team.before;
    for (int r = 0; r < kTeam; r++)
      for (size_t k = 0; k < bytes; k++)
        if (team.copy[r][k] != team.before[k]) {
          if (after[k] != team.before[k] && after[k] != team.copy[r][k]) return "they write different numbers to one place";
          after[k] = team.copy[r][k];
        }
    for (int r = 0; r < kTeam; r++) team.copy[r] = after;
    team.before = after;
  } while (!team.ended[0]);
  return nullptr;
}

inline const double* meet(int place, double x) {
  int round = team.round;
  team.told[round][team.rank] = x, team.place[team.rank] = place;
  swapcontext(&team.own[team.rank], &team.home);
  return team.told[round];
}
CS_FN int team_rank() { return team.rank; }
CS_FN void team_wait() { meet(kWait, 0); }
template <class T> CS_FN T of_rank(T x, int k) { return T(meet(kOfRank, x)[k]); }
template <class T> CS_FN T largest(T x) {
  const double* all = meet(kLargest, x);
  for (int r = 0; r < kTeam; r++) x = max(x, T(all[r]));
  return x;
}
CS_FN bool anyone(bool x) { return largest(double(x)) > 0; }
CS_FN int how_many(bool x, int& before) {
  const double* all = meet(kHowMany, x);
  int n = 0;
  for (int r = 0; r < kTeam; r++) before = r == team.rank ? n : before, n += all[r] > 0;
  return n;
}

CS_END
