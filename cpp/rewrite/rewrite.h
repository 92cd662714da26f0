// What the library tells of its rewriting of graphs.

#ifndef BLOCKCELL_CPP_REWRITE_REWRITE_H_
#define BLOCKCELL_CPP_REWRITE_REWRITE_H_

#include <cstddef>
#include <utility>
#include <vector>

namespace blockcell {

// Whether graphs are rewritten: not with BLOCKCELL_OVERRIDE=0, nor with BLOCKCELL_REWRITE=0.
bool RewritesGraphs();

// How many nodes of each op of this library were put into graphs of this process.
std::vector<std::pair<const char*, std::size_t>> RewrittenNodes();

}  // namespace blockcell

#endif  // BLOCKCELL_CPP_REWRITE_REWRITE_H_
