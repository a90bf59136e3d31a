//! Which tools' results may be pruned.

use ctx_core::{Error, ErrorKind, Result};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::Tools;

/// Compiled tool patterns.
#[derive(Clone, Debug)]
pub(crate) struct ToolFilter {
    allow: GlobSet,
    deny: GlobSet,
}

impl ToolFilter {
    pub(crate) fn new(tools: &Tools) -> Result<Self> {
        Ok(Self { allow: compile("allow", &tools.allow)?, deny: compile("deny", &tools.deny)? })
    }

    /// Whether every tool's results may be pruned, so that names need not be looked up.
    pub(crate) fn admits_all(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Whether results of a tool may be pruned. An unknown tool matches no pattern.
    pub(crate) fn admits(&self, tool: Option<&str>) -> bool {
        let tool = tool.unwrap_or_default();
        !self.deny.is_match(tool) && (self.allow.is_empty() || self.allow.is_match(tool))
    }
}

fn compile(list: &'static str, patterns: &[String]) -> Result<GlobSet> {
    let wrong = |pattern: &str, e: globset::Error| {
        Error::new(ErrorKind::Config, format!("invalid tool pattern '{pattern}': {}", e.kind()))
            .with("key", format!("agents.defaults.contextPruning.tools.{list}"))
            .hint("`*` matches any text, `?` one character")
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns.iter().map(|p| p.trim()).filter(|p| !p.is_empty()) {
        let glob = GlobBuilder::new(pattern)
            .case_insensitive(true)
            .build()
            .map_err(|e| wrong(pattern, e))?;
        set.add(glob);
    }
    set.build().map_err(|e| wrong(&patterns.join(", "), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(allow: &[&str], deny: &[&str]) -> ToolFilter {
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        ToolFilter::new(&Tools { allow: owned(allow), deny: owned(deny) }).unwrap()
    }

    #[test]
    fn deny_wins_and_case_does_not_matter() {
        let filter = filter(&["read*", "EXEC"], &["*secret*"]);
        let admitted =
            ["Read", "readFile", "exec", "bash", "read_SECRET"].map(|t| filter.admits(Some(t)));
        assert_eq!(admitted, [true, true, true, false, false]);
        assert!(!filter.admits(None));
    }

    #[test]
    fn empty_lists_admit_all_tools() {
        assert!(filter(&[], &[" "]).admits_all() && filter(&[], &[]).admits(None));
        assert!(filter(&[], &["bash"]).admits(Some("mcp/server/read")));
        assert!(filter(&["mcp*"], &[]).admits(Some("mcp/server/read")));
    }

    #[test]
    fn a_broken_pattern_is_named() {
        let tools = Tools { allow: vec!["read[".to_owned()], deny: Vec::new() };
        let error = ToolFilter::new(&tools).unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("read["));
    }
}
