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

// A piece of the scratch that a thread has changed
struct Changed {
  static constexpr size_t kBytes = 256;
  size_t at;
  unsigned char bytes[kBytes];
};

struct Team {
  static constexpr size_t kStack = size_t(1) << 20;
  ucontext_t home, own[kTeam];
  std::vector<unsigned char> stack[kTeam], before;  // before: what all of them have
  unsigned char* scratch;                           // that of the one that runs
  std::vector<Changed> changed[kTeam];              // of a thread that does not, and has not shown it yet
  std::function<void(void*)> work;
  double told[2][kTeam];  // of this round, and of the one before
  int rank = 0, round = 0, place[kTeam];
  bool ended[kTeam];
};
inline Team team;

// thread r runs until it waits, or tells something
inline void team_turn(int r) {
  for (const Changed& x : team.changed[r]) std::memcpy(team.scratch + x.at, x.bytes, Changed::kBytes);
  team.changed[r].clear(), team.rank = r;
  swapcontext(&team.home, &team.own[r]);
  for (size_t at = 0; at < team.before.size(); at += Changed::kBytes) {
    unsigned char *now = team.scratch + at, *was = team.before.data() + at;
    if (!std::memcmp(now, was, Changed::kBytes)) continue;
    team.changed[r].push_back({at, {}});
    std::memcpy(team.changed[r].back().bytes, now, Changed::kBytes), std::memcpy(now, was, Changed::kBytes);
  }
}
// what any of them has changed is what all of them have; false if two do not agree
inline bool team_shows() {
  for (int r = 0; r < kTeam; r++)
    for (const Changed& x : team.changed[r])
      for (size_t k = 0; k < Changed::kBytes; k++) {
        unsigned char &now = team.scratch[x.at + k], was = team.before[x.at + k];
        if (x.bytes[k] == was) continue;
        if (now != was && now != x.bytes[k]) return false;
        now = x.bytes[k];
      }
  for (auto& changed : team.changed) {
    for (const Changed& x : changed) std::memcpy(team.before.data() + x.at, team.scratch + x.at, Changed::kBytes);
    changed.clear();
  }
  return true;
}

// runs f(scratch) by all threads; scratch has `bytes`, up to the next multiple of a piece.   Returns what they do that threads of a team must not, or null
inline const char* team_runs(unsigned char* scratch, size_t bytes, const std::function<void(void*)>& f) {
  size_t whole = (bytes + Changed::kBytes - 1) / Changed::kBytes * Changed::kBytes;
  team.work = f, team.scratch = scratch, team.before.assign(scratch, scratch + whole);
  for (int r = 0; r < kTeam; r++) {
    team.stack[r].resize(Team::kStack), team.changed[r].clear(), team.ended[r] = false;
    getcontext(&team.own[r]);
    team.own[r].uc_stack = {team.stack[r].data(), 0, Team::kStack}, team.own[r].uc_link = &team.home;
    makecontext(&team.own[r], [] { team.work(team.scratch), team.ended[team.rank] = true; }, 0);
  }
  do {
    for (int r = 0; r < kTeam; r++) team_turn(r);
    for (int r = 1; r < kTeam; r++)
      if (team.ended[r] != team.ended[0] || (!team.ended[r] && team.place[r] != team.place[0]))
        return "they wait in different places";
    team.round ^= 1;
    if ((team.ended[0] || team.place[0] == kWait) && !team_shows()) return "they write different numbers to one place";
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
template <class T> CS_FN T of_rank(T x, int k) { return T(meet(kOfRank, x)[k % kTeam]); }
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
