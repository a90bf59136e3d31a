//! Decides what a new fact does to the known ones.

use ctx_facts::Statement;

use super::{Fact, FactCandidate, FactId, FactKind};

/// What happens to a candidate.
///
/// Deletion does not exist: a model that errs or follows injected instructions could empty the
/// memory. An outdated fact is superseded, and stays readable as a past fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Nothing similar is known.
    Add,
    /// It repeats this fact in more detail, and replaces its text.
    Update {
        /// The fact to update.
        id: FactId,
    },
    /// It contradicts these facts, and holds from now on.
    Supersede {
        /// The facts that no longer hold.
        ids: Vec<FactId>,
    },
    /// It is already known, and says that these facts no longer hold.
    Retire {
        /// The facts that no longer hold.
        ids: Vec<FactId>,
        /// The fact that states it.
        by: FactId,
    },
    /// It is already known.
    None {
        /// The fact that states it.
        id: FactId,
    },
}

/// How a candidate relates to one fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The same, or less.
    Known,
    /// The same, and more.
    Detail,
    /// The same subject, another value.
    Contradiction,
    /// Another subject.
    Unrelated,
}

/// Decides what a candidate does to current facts. A pure function, by rules alone: the same
/// subject with another value supersedes, more detail updates, and a repetition is known.
///
/// Facts that are not [current](Fact::is_current) are ignored.
#[must_use]
pub fn decide<'a>(
    existing: impl Iterator<Item = (&'a Fact, &'a Statement)>,
    candidate: &FactCandidate,
) -> Update {
    let new = Statement::of(&candidate.content);
    let (mut known, mut detail, mut contradicted) = (None, None, Vec::new());
    for (fact, old) in existing.filter(|(fact, _)| fact.is_current()) {
        if fact.content == candidate.content {
            return Update::None { id: fact.id };
        }
        match relation(fact.kind, old, candidate.kind, &new) {
            Relation::Known => known = known.or(Some(fact.id)),
            Relation::Detail => detail = detail.or(Some(fact.id)),
            Relation::Contradiction => contradicted.push(fact.id),
            Relation::Unrelated => {}
        }
    }
    // A contradiction takes precedence: the contradicted fact would be wrong.
    if !contradicted.is_empty() {
        return Update::Supersede { ids: contradicted };
    }
    match (known, detail) {
        (Some(id), _) => Update::None { id },
        (None, Some(id)) => Update::Update { id },
        (None, None) => Update::Add,
    }
}

/// Returns how a candidate relates to a fact.
pub(super) fn relation(
    old_kind: FactKind,
    old: &Statement,
    new_kind: FactKind,
    new: &Statement,
) -> Relation {
    // States of work are comparable with issues, and everything else with each other.
    let is_state = |kind| matches!(kind, FactKind::Issue | FactKind::TaskState);
    let comparable = is_state(old_kind) == is_state(new_kind)
        || is_state(old_kind) && new_kind == FactKind::Implementation;
    if !comparable {
        Relation::Unrelated
    } else if new.replaces(old) {
        Relation::Contradiction
    } else if new.is_within(old) {
        Relation::Known
    } else if old.is_within(new) {
        Relation::Detail
    } else {
        Relation::Unrelated
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::Timestamp;

    use super::*;

    fn candidate(kind: FactKind, content: &str) -> FactCandidate {
        FactCandidate {
            kind,
            content: content.into(),
            context: String::new(),
            timestamp: Timestamp(1),
            source_entry_ids: Vec::new(),
            session_id: "s".into(),
        }
    }

    fn outcome(known: (FactKind, &str), new: (FactKind, &str)) -> &'static str {
        let fact = candidate(known.0, known.1).into_fact();
        let old = Statement::of(&fact.content);
        match decide([(&fact, &old)].into_iter(), &candidate(new.0, new.1)) {
            Update::Add => "add",
            Update::Update { .. } => "update",
            Update::Supersede { .. } => "supersede",
            Update::Retire { .. } => "retire",
            Update::None { .. } => "none",
        }
    }

    #[test]
    fn effects_of_a_new_fact_on_a_known_one() {
        use FactKind::{Config, Decision, Implementation, Issue, TaskState};
        for (kind, known, new, expected) in [
            (Config, "Server port is 3000", "The server port is now 8080", "supersede"),
            (Config, "Server port is 3000", "The server port is 3000", "none"),
            (Config, "API timeout is set to 30s", "API timeout is 60s", "supersede"),
            (Config, "LOG_LEVEL=debug", "LOG_LEVEL=info", "supersede"),
            (Config, "服务端口是3000", "服务端口改为8080", "supersede"),
            (Config, "Server port is 3000", "Database port is 5432", "add"),
            (Config, "The Node version is set to 18", "The Node version is set to 20", "supersede"),
            (Config, "The Node version is 18", "The Node version is v20", "supersede"),
            (Config, "Node 1 is down", "Node 2 is up", "add"),
            (Config, "The API runs on port 3000", "The API runs on port 8080", "supersede"),
            (Decision, "Use PostgreSQL", "Use MySQL instead of PostgreSQL", "supersede"),
            (Decision, "Use PostgreSQL for storage", "Use SQLite for storage", "supersede"),
            (Decision, "Use PostgreSQL", "Switch to MySQL", "supersede"),
            (Decision, "Use PostgreSQL", "Use Redis for caching", "add"),
            (Decision, "Use PostgreSQL for production", "Use SQLite for tests", "add"),
            (Decision, "Use PostgreSQL", "Use PostgreSQL for user accounts", "update"),
            (Decision, "Use PostgreSQL as the database", "Use postgresql as database", "none"),
            (Decision, "Use Redis for sessions", "Do not use Redis for sessions", "supersede"),
            (Decision, "使用 MySQL", "使用 PostgreSQL 而不是 MySQL", "supersede"),
            (Decision, "Use npm", "Migrated from npm to pnpm", "supersede"),
            (
                TaskState,
                "Refund logic not yet implemented",
                "Refund logic implemented in refund.ts",
                "supersede",
            ),
            (TaskState, "Refund logic implemented", "Search index implemented", "add"),
            (TaskState, "退款逻辑尚未完成", "退款逻辑已完成", "supersede"),
            (TaskState, "Phase 1 done", "Phase 2 done", "add"),
            (Implementation, "Created src/a.rs", "Created src/b.rs", "add"),
            (
                Implementation,
                "Webhook endpoint is /api/hook",
                "Webhook endpoint is /api/stripe/webhook",
                "supersede",
            ),
            (
                Implementation,
                "Webhook endpoint is /api/stripe/webhook",
                "Webhook endpoint is /v2/webhooks/stripe",
                "supersede",
            ),
            (
                Issue,
                "Login test fails in staging",
                "Login test fails in staging because of a stale cookie",
                "update",
            ),
        ] {
            assert_eq!(outcome((kind, known), (kind, new)), expected, "{known} / {new}");
        }
        let fixed = (TaskState, "SSL certificate error in staging fixed");
        let broken = (Issue, "SSL certificate error in staging is unresolved");
        assert_eq!(outcome(broken, fixed), "supersede");
    }

    #[test]
    fn superseded_facts_are_ignored() {
        let mut fact = candidate(FactKind::Config, "Server port is 3000").into_fact();
        fact.valid_to = Some(Timestamp(2));
        let again = candidate(FactKind::Config, "Server port is 3000");
        let old = Statement::of(&fact.content);
        assert_eq!(decide([(&fact, &old)].into_iter(), &again), Update::Add);
    }
}
