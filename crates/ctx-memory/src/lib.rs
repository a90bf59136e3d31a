//! Archive, facts, recall, smart trim and workspace search.
