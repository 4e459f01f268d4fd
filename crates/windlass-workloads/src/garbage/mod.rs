mod graph;
mod verdict;
