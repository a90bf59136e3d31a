//! The engine's copy of a session.

use std::collections::{HashMap, HashSet};

use crate::protocol::{Budget, Error, ErrorKind, RawMessage, Result, Row, Turn, Update};

/// A session as an engine sees it: the rows of the next request, oldest first, and the budget.
#[derive(Clone, Debug, Default)]
pub struct Session {
    id: String,
    rows: Vec<Row>,
    /// Messages that were ingested, by id, until an update contains them as rows.
    ingested: HashMap<String, Option<RawMessage>>,
    budget: Budget,
    turn: Turn,
}

impl Session {
    pub(crate) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// Returns the session id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the rows, oldest first.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the budget. All zero before the first request.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Returns the time of this call.
    #[must_use]
    pub fn turn(&self) -> Turn {
        self.turn
    }

    /// Returns the tokens of all rows.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.rows.iter().map(|row| row.tokens).fold(0, u64::saturating_add)
    }

    /// Returns the rows by group: a tool call and its results together, every other row alone; in
    /// the order of their first rows.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<&Row>> {
        let mut places: HashMap<u64, usize> = HashMap::new();
        let mut groups: Vec<Vec<&Row>> = Vec::new();
        for row in &self.rows {
            let place = *places.entry(row.group).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
        groups
    }

    pub(crate) fn set(&mut self, budget: Budget, turn: Turn) {
        self.budget = budget;
        self.turn = turn;
    }

    /// Records a message. Returns `false` if it is already known.
    pub(crate) fn ingest(&mut self, row: &Row) -> bool {
        if self.ingested.contains_key(&row.id) || self.rows.iter().rev().any(|r| r.id == row.id) {
            return false;
        }
        self.ingested.insert(row.id.clone(), row.message.clone());
        true
    }

    /// Applies an update.
    pub(crate) fn update(&mut self, update: Update) -> Result<()> {
        if update.reset {
            // A host that sends all rows again omits the messages that it has already sent.
            for row in self.rows.drain(..) {
                self.ingested.entry(row.id).or_insert(row.message);
            }
        }
        if !update.gone.is_empty() {
            let gone: HashSet<&str> = update.gone.iter().map(String::as_str).collect();
            self.rows.retain(|row| !gone.contains(row.id.as_str()));
        }
        if !update.changed.is_empty() {
            let mut changed: HashMap<String, Row> =
                update.changed.into_iter().map(|row| (row.id.clone(), row)).collect();
            for row in &mut self.rows {
                if let Some(new) = changed.remove(&row.id) {
                    let message = new.message.clone().or_else(|| row.message.take());
                    *row = Row { message, ..new };
                }
            }
        }
        for mut row in update.added {
            let known = self.ingested.remove(&row.id).flatten();
            row.message = row.message.or(known);
            self.rows.push(row);
        }
        if self.rows.len() != update.rows {
            let (known, expected) = (self.rows.len(), update.rows);
            return Err(Error::new(
                ErrorKind::OutOfStep,
                format!("the session has {known} rows, but the update expects {expected}"),
            ));
        }
        if update.reset {
            self.ingested.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Encoding, Message};

    fn row(id: &str, tokens: u64) -> Row {
        Row { id: id.into(), tokens, ..Row::default() }
    }

    fn ids(session: &Session) -> Vec<&str> {
        session.rows().iter().map(|row| row.id.as_str()).collect()
    }

    #[test]
    fn an_update_contains_only_changes() {
        let mut session = Session::new("s");
        let added = vec![row("a", 1), row("b", 2), row("c", 3)];
        session.update(Update { added, rows: 3, ..Update::default() }).unwrap();
        session
            .update(Update {
                gone: vec!["a".into()],
                changed: vec![row("c", 1)],
                added: vec![row("d", 4)],
                rows: 3,
                ..Update::default()
            })
            .unwrap();
        assert_eq!(ids(&session), ["b", "c", "d"]);
        assert_eq!(session.tokens(), 7);
    }

    #[test]
    fn a_different_row_count_is_out_of_step() {
        let mut session = Session::new("s");
        let error =
            session.update(Update { added: vec![row("a", 1)], rows: 2, ..Update::default() });
        assert_eq!(error.unwrap_err().kind, ErrorKind::OutOfStep);
        let all = vec![row("x", 1), row("y", 1)];
        session.update(Update { reset: true, added: all, rows: 2, ..Update::default() }).unwrap();
        assert_eq!(ids(&session), ["x", "y"]);
    }

    #[test]
    fn a_message_is_ingested_once_and_comes_back_with_its_row() {
        let mut session = Session::new("s");
        let message = Message { role: "user".into(), blocks: Vec::new() };
        let message = RawMessage::new(Encoding::Json, &message).unwrap();
        let whole = Row { message: Some(message), ..row("a", 1) };
        assert!(session.ingest(&whole));
        assert!(!session.ingest(&whole));
        for update in [
            Update { added: vec![row("a", 1)], rows: 1, ..Update::default() },
            Update { reset: true, added: vec![row("a", 1)], rows: 1, ..Update::default() },
            Update { changed: vec![row("a", 9)], rows: 1, ..Update::default() },
        ] {
            session.update(update).unwrap();
            assert!(!session.ingest(&whole));
            assert_eq!(session.rows()[0].parsed().unwrap().unwrap().role, "user");
        }
    }

    #[test]
    fn calls_and_results_are_one_group_in_any_position() {
        let mut session = Session::new("s");
        let of = |id: &str, group| Row { group, ..row(id, 1) };
        let added = vec![of("a", 7), of("b", 2), of("c", 7)];
        session.update(Update { added, rows: 3, ..Update::default() }).unwrap();
        let groups: Vec<Vec<&str>> = session
            .groups()
            .into_iter()
            .map(|group| group.into_iter().map(|row| row.id.as_str()).collect())
            .collect();
        assert_eq!(groups, [vec!["a", "c"], vec!["b"]]);
    }
}
