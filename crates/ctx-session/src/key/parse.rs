//! Parsing a session key.

use std::str::FromStr;

use ctx_core::{Error, ErrorKind, Result};

use super::{AgentScope, ChatKind, FileId, MAX_KEY_BYTES, Name, PeerId, SessionKey, Thread};

impl FromStr for SessionKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.len() > MAX_KEY_BYTES {
            return Err(Error::new(ErrorKind::InvalidInput, "the session key is too long")
                .with("bytes", text.len())
                .with("most", MAX_KEY_BYTES));
        }
        key(text).map_err(|e| e.with("session key", format!("'{}'", text.escape_debug())))
    }
}

fn key(text: &str) -> Result<SessionKey> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    match kind {
        "global" if rest.is_empty() && text == "global" => Ok(SessionKey::Global),
        "cron" => PeerId::new(rest).map(SessionKey::Cron),
        "hook" => PeerId::new(rest).map(SessionKey::Hook),
        "acp" => PeerId::new(rest).map(SessionKey::Acp),
        "agent" => agent_key(rest),
        _ => Err(Error::new(ErrorKind::InvalidInput, "invalid session key")
            .hint("a key begins with agent:, cron:, hook: or acp:, or is global")),
    }
}

fn agent_key(rest: &str) -> Result<SessionKey> {
    let Some((agent, rest)) = rest.split_once(':') else {
        return Err(Error::new(ErrorKind::InvalidInput, "the key names an agent but no session")
            .hint("the agent's main session is agent:<agent>:main"));
    };
    let mut parts: Vec<&str> = rest.split(':').collect();
    let thread = match parts.as_slice() {
        [_, .., "thread", id] => Some(Thread::Thread(FileId::new(*id)?)),
        [_, .., "topic", id] => Some(Thread::Topic(FileId::new(*id)?)),
        _ => None,
    };
    if thread.is_some() {
        parts.truncate(parts.len() - 2);
    }
    Ok(SessionKey::Agent { agent: FileId::new(agent)?, scope: scope(&parts)?, thread })
}

fn scope(parts: &[&str]) -> Result<AgentScope> {
    let id = |parts: &[&str]| PeerId::new(parts.join(":"));
    Ok(match *parts {
        ["direct", ref peer @ ..] => AgentScope::Direct { peer: id(peer)? },
        ["subagent", ref rest @ ..] => AgentScope::Subagent(id(rest)?),
        ["acp", ref rest @ ..] => AgentScope::Acp(id(rest)?),
        ["explicit", ref rest @ ..] => AgentScope::Explicit(id(rest)?),
        ["cron", job] => AgentScope::Cron { job: Name::new(job)?, run: None },
        ["cron", job, "run", ref run @ ..] => {
            AgentScope::Cron { job: Name::new(job)?, run: Some(id(run)?) }
        }
        [main] => AgentScope::Main(Name::new(main)?),
        [channel, "direct", ref peer @ ..] => AgentScope::ChannelDirect {
            channel: Name::new(channel)?,
            account: None,
            peer: id(peer)?,
        },
        [channel, kind @ ("group" | "channel" | "room"), ref rest @ ..] => AgentScope::Place {
            channel: Name::new(channel)?,
            kind: match kind {
                "group" => ChatKind::Group,
                "channel" => ChatKind::Channel,
                _ => ChatKind::Room,
            },
            id: id(rest)?,
        },
        [channel, account, "direct", ref peer @ ..] => AgentScope::ChannelDirect {
            channel: Name::new(channel)?,
            account: Some(Name::new(account)?),
            peer: id(peer)?,
        },
        _ => {
            return Err(Error::new(ErrorKind::InvalidInput, "unknown kind of agent key").hint(
                "known: <mainKey>, direct:<peer>, <channel>:direct:<peer>, \
                     <channel>:<account>:direct:<peer>, <channel>:group|channel|room:<id>, \
                     subagent:<id>, cron:<job>[:run:<run>], acp:<id>, explicit:<id>; each may end \
                     in :thread:<id> or :topic:<id>",
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_key_shape_is_parsed_and_written_back() {
        let keys = [
            "global",
            "cron:daily-report",
            "hook:6f1c1f0e-3c0b-4f43-9d9a-0c5f4f4b1c11",
            "acp:claude:s1",
            "agent:main:main",
            "agent:main:work",
            "agent:main:direct:+15551234567",
            "agent:main:telegram:direct:12345",
            "agent:main:slack:acme:direct:U012AB3CD",
            "agent:main:whatsapp:group:120363@g.us",
            "agent:main:discord:channel:998877",
            "agent:main:matrix:room:!abc:example.org",
            "agent:main:signal:group:a+b/c==",
            "agent:main:telegram:group:-1001:topic:42",
            "agent:main:slack:channel:C1:thread:1712345678.000100",
            "agent:main:main:thread:5",
            "agent:main:subagent:7b1d",
            "agent:main:subagent:7b1d:subagent:9c",
            "agent:main:cron:nightly",
            "agent:main:cron:nightly:run:3",
            "agent:main:acp:x",
            "agent:main:explicit:model-run-6f1c",
            "agent:代理:main",
        ];
        for text in keys {
            let key: SessionKey = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(key.to_string(), text);
            let json = serde_json::to_string(&key).unwrap();
            assert_eq!(serde_json::from_str::<SessionKey>(&json).unwrap(), key);
        }
    }

    #[test]
    fn nonsense_is_refused_and_the_error_says_why() {
        let long = format!("agent:{}:main", "a".repeat(101));
        let huge = format!("hook:{}", "a".repeat(2000));
        let cases = [
            ("", "invalid session key"),
            ("main", "invalid session key"),
            ("global:x", "invalid session key"),
            ("cron:", "empty"),
            ("hook:a::b", "empty"),
            ("agent:main", "no session"),
            ("agent::main", "empty"),
            ("agent:main:", "empty"),
            ("agent:..:main", "begin with '.'"),
            ("agent:a/b:main", "file name"),
            ("agent:a\\b:main", "file name"),
            ("agent:a:main:topic:../x", "file name"),
            ("agent:a:main:thread:", "empty"),
            ("agent:a:direct", "empty"),
            ("agent:a:group", "this word is reserved in session keys"),
            ("agent:a:telegram:group:", "empty"),
            ("agent:a:foo:bar:baz", "unknown kind of agent key"),
            ("agent:a:cron:job:run", "empty"),
            ("agent:a\u{0}b:main", "control character"),
            ("agent:a\u{202e}b:main", "control character"),
            ("agent:a: main", "white space"),
            (long.as_str(), "too long"),
            (huge.as_str(), "too long"),
        ];
        for (text, why) in cases {
            let error = text.parse::<SessionKey>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }

    fn file_id() -> impl Strategy<Value = FileId> {
        "[a-zA-Z0-9_-][a-zA-Z0-9_@+-]{0,20}".prop_map(|s| FileId::new(s).unwrap())
    }

    fn name() -> impl Strategy<Value = Name> {
        ".{1,12}".prop_filter_map("no name", |s| Name::new(s).ok())
    }

    fn peer() -> impl Strategy<Value = PeerId> {
        let words = prop::collection::vec(
            prop_oneof![".{1,6}", Just("thread".to_owned()), Just("direct".to_owned())],
            1..4,
        );
        words.prop_filter_map("no id", |w| PeerId::new(w.join(":")).ok())
    }

    fn scopes() -> impl Strategy<Value = AgentScope> {
        prop_oneof![
            name().prop_map(AgentScope::Main),
            peer().prop_map(|peer| AgentScope::Direct { peer }),
            (name(), prop::option::of(name()), peer()).prop_map(|(channel, account, peer)| {
                AgentScope::ChannelDirect { channel, account, peer }
            }),
            (name(), 0..3usize, peer()).prop_map(|(channel, kind, id)| {
                let kind = [ChatKind::Group, ChatKind::Channel, ChatKind::Room][kind];
                AgentScope::Place { channel, kind, id }
            }),
            peer().prop_map(AgentScope::Subagent),
            (name(), prop::option::of(peer())).prop_map(|(job, run)| AgentScope::Cron { job, run }),
            peer().prop_map(AgentScope::Acp),
            peer().prop_map(AgentScope::Explicit),
        ]
    }

    proptest! {
        #[test]
        fn constructed_keys_parse_back(
            agent in file_id(),
            scope in scopes(),
            thread in prop::option::of((any::<bool>(), file_id())),
        ) {
            let thread = thread.map(|(topic, id)| {
                if topic { Thread::Topic(id) } else { Thread::Thread(id) }
            });
            let key = SessionKey::Agent { agent, scope, thread };
            prop_assert_eq!(key.to_string().parse::<SessionKey>().unwrap(), key);
        }

        #[test]
        fn parsed_keys_are_written_unchanged(text in "(agent|cron|hook|acp|global|:|[a-z/.]|thread|topic|direct){0,12}") {
            if let Ok(key) = text.parse::<SessionKey>() {
                prop_assert_eq!(key.to_string(), text);
            }
        }
    }
}
