//! Sessions as resources: a list of them, and their content page by page.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use ctx_core::text::clip;
use ctx_core::{Error, ErrorKind, Result, Timestamp};
use ctx_redact::Redactor;
use ctx_runtime::lookup::cited::format_message;
use ctx_session::{DiscoveredSession, StoredSession};
use rmcp::model::{
    Annotations, ListResourcesResult, MetaObject, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::json;

use super::session::file_name;
use super::uri::{SessionPart, TEMPLATE};
use super::{SessionRef, Setup};

/// The number of sessions per page of the list.
const LISTED: usize = 100;

/// The maximum number of listed sessions of other agents. The beginning of each is read for a page.
const MOST_OTHERS: usize = 1_000;

/// The maximum length of a project's path in a description, in characters.
const PROJECT_CHARS: usize = 300;

/// The size of a session page in characters, rounded up to whole messages.
const PAGE_CHARS: usize = 40_000;

const TEXT: &str = "text/plain";

/// Lists the file that the server was started with, then the agent's sessions (newest first), then
/// other agents' sessions (current folder first, each part newest first).
pub(super) fn list(setup: &Setup, cursor: Option<&str>) -> Result<ListResourcesResult> {
    let from: usize = match cursor {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| {
            Error::new(ErrorKind::InvalidInput, "invalid cursor")
                .with("cursor", clip(cursor, 40))
                .hint("start without a cursor, and continue with `nextCursor` of each answer")
        })?,
    };
    let mut found = Vec::new();
    if let Some(SessionRef::File(path)) = &setup.session {
        found.push(of_file(path));
    }
    found.extend(setup.stored()?.iter().map(of_stored));
    if let Some(others) = &setup.others {
        found.extend(others.sessions.newest(MOST_OTHERS)?.iter().map(of_other));
    }
    let mut known = HashSet::new();
    found.retain(|resource| known.insert(resource.uri.clone()));
    let end = from.saturating_add(LISTED);
    let is_more = found.len() > end;
    let page = found.into_iter().skip(from).take(LISTED).collect();
    let mut listed = ListResourcesResult::with_all_items(page);
    listed.next_cursor = is_more.then(|| end.to_string());
    Ok(listed)
}

/// Returns the URI template for reading a session from the middle.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(TEMPLATE, "session")
        .with_title("A session, from a given message on")
        .with_description(
            "The messages of a session as text, beginning with message number `from` \
             (0 is the first)",
        )
        .with_mime_type(TEXT)
}

/// Returns a page of a session.
pub(super) fn read(setup: &Setup, uri: &str) -> Result<ReadResourceResult> {
    let SessionPart { key, from } = SessionPart::parse(uri)?;
    let opened = setup.open(Some(&key))?;
    let line = opened.transcript.main_line()?;
    if from > line.len() {
        return Err(Error::new(ErrorKind::NotFound, "the session ends before that message")
            .with("session", &opened.name)
            .with("from", from)
            .with("messages", line.len())
            .hint(format!("it starts at {}", SessionPart::whole(&opened.name))));
    }
    let (mut text, mut chars, mut end) = (String::new(), 0, from);
    for item in line.iter().skip(from) {
        let message = item.entry.message()?;
        let mut formatted = redacted(format_message(&item.entry, &message));
        let size = formatted.chars().count();
        if chars > 0 && chars + size > PAGE_CHARS {
            break;
        }
        if size > PAGE_CHARS {
            let id = item.entry.id();
            formatted = format!(
                "{}\n[cut: `expand` returns all of e:{id}]\n",
                clip(&formatted, PAGE_CHARS)
            );
        }
        if chars > 0 {
            text.push('\n');
        }
        text.push_str(&formatted);
        chars += size;
        end += 1;
    }
    let next = (end < line.len()).then(|| SessionPart::later(&opened.name, end));
    if let Some(next) = &next {
        text.push_str(&format!(
            "\n[messages {from} to {} of {}; more: {next}]\n",
            end - 1,
            line.len()
        ));
    }
    let about = json!({ "from": from, "count": end - from, "messages": line.len(), "next": next });
    let about = about.as_object().cloned().unwrap_or_default();
    let contents = ResourceContents::text(text, uri).with_meta(MetaObject(about));
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Masks what looks like a secret in a formatted message, as the archive does. Its first line, which
/// has the id to cite, stays.
fn redacted(formatted: String) -> String {
    let Some((head, body)) = formatted.split_once('\n') else { return formatted };
    match Redactor::builtin().redact(body).text {
        Cow::Borrowed(_) => formatted,
        Cow::Owned(body) => format!("{head}\n{body}"),
    }
}

fn of_stored(session: &StoredSession) -> Resource {
    let StoredSession { key, entry, path } = session;
    let named = [&entry.display_name, &entry.subject, &entry.room];
    let title = named.into_iter().flatten().next().unwrap_or(key);
    let (id, compactions) = (&entry.session_id, entry.compaction_count.unwrap_or(0));
    let description = format!("session {id}, {compactions} compactions");
    let size = path.as_deref().and_then(DiscoveredSession::at).map(|found| found.bytes);
    resource(key, description, size, Some(entry.updated_at)).with_title(title)
}

fn of_file(path: &Path) -> Resource {
    let description = "the session that the server was started with".to_owned();
    let (bytes, modified) = DiscoveredSession::at(path).map(|it| (it.bytes, it.modified)).unzip();
    resource(&file_name(path), description, bytes, modified)
}

fn of_other(session: &DiscoveredSession) -> Resource {
    let agent = session.agent.name();
    let project = session.project.as_deref().map(|project| project.display().to_string());
    let place = project.map(|project| format!(" in {}", clip(&project, PROJECT_CHARS)));
    let description = format!("session of {agent}{}", place.unwrap_or_default());
    resource(&session.session_id, description, Some(session.bytes), Some(session.modified))
}

fn resource(
    name: &str,
    description: String,
    size: Option<u64>,
    modified: Option<Timestamp>,
) -> Resource {
    let mut resource = Resource::new(SessionPart::whole(name), name).with_mime_type(TEXT);
    resource.description = Some(description);
    resource.size = size;
    resource.annotations = modified.map(|at| {
        let mut annotations = Annotations::default();
        let at = jiff::Timestamp::from_millisecond(at.0).ok();
        annotations.last_modified = at.map(|at| at.to_string());
        annotations
    });
    resource
}
