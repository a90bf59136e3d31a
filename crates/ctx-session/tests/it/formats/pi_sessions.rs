//! pi sessions: entries, branches, compactions, edits, older versions.

use ctx_session::{Format, TreeEntry};

use super::{context, line, pi, read, user};

#[test]
fn pi_entries() {
    let text = pi(&[
        &user("a", "null"),
        r#"{"type":"thinking_level_change","id":"b","parentId":"a","thinkingLevel":"high"}"#,
        r#"{"type":"model_change","id":"c","parentId":"b","provider":"p","modelId":"m"}"#,
        r#"{"type":"custom_message","id":"d","parentId":"c","customType":"x","content":"note","display":true}"#,
        r#"{"type":"custom","id":"e","parentId":"d","customType":"x","data":{"k":1}}"#,
        r#"{"type":"branch_summary","id":"f","parentId":"e","fromId":"a","summary":"left"}"#,
        r#"{"type":"branch_summary","id":"g","parentId":"f","fromId":"a","summary":""}"#,
        r#"{"type":"label","id":"h","parentId":"g","targetId":"a","label":"start"}"#,
        r#"{"type":"label","id":"i","parentId":"h","targetId":"d","label":"x"}"#,
        r#"{"type":"label","id":"j","parentId":"i","targetId":"d","label":""}"#,
        r#"{"type":"session_info","id":"k","parentId":"j","name":" My session "}"#,
        r#"{"type":"usage","id":"l","parentId":"k","kind":"cache_warm","usage":{}}"#,
    ]);
    let transcript = read(&text);
    assert_eq!(transcript.problems, []);
    assert_eq!(line(&transcript), ["user: a", "custom: note", "branchSummary: left"]);
    let found = transcript.context(None).unwrap();
    assert_eq!(context(&found), ["user: a", "custom: note", "branchSummary: left"]);
    assert_eq!(found.thinking_level, "high");
    assert_eq!(found.model, Some(("p".to_owned(), "m".to_owned())));
    assert_eq!(transcript.labels, [("a".into(), "start".into())].into());
    assert_eq!(transcript.name.as_deref(), Some("My session"));
    assert_eq!(&**transcript.leaf().unwrap(), "l");
    let header = &transcript.header;
    assert_eq!(header.parent_session.as_deref(), Some("/p.jsonl"));
    assert_eq!((header.id.as_deref(), header.cwd.as_deref()), (Some("s"), Some("/w")));
}

#[test]
fn pi_branches_and_the_leaf() {
    let text = pi(&[
        &user("a", "null"),
        &user("b", "\"a\""),
        &user("c", "\"a\""),
        &user("d", "\"c\""),
        r#"{"type":"leaf","id":"e","parentId":"d","targetId":"b"}"#,
    ]);
    let transcript = read(&text);
    assert_eq!(line(&transcript), ["user: a", "user: b"]);
    let parents: Vec<_> = transcript.entries.iter().map(TreeEntry::parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0), Some(2), Some(3)]);
    assert_eq!(transcript.tips(), [1, 4]);
    let d = transcript.find("d").unwrap();
    assert_eq!(transcript.path(Some(&d)).unwrap(), [0, 2, 3]);
    assert!(transcript.path(Some(&"zz".into())).is_err());
    let empty = read(&pi(&[
        &user("a", "null"),
        r#"{"type":"leaf","id":"e","parentId":"a","targetId":null}"#,
    ]));
    assert!(empty.leaf().is_none() && empty.main_line().unwrap().is_empty());
}

#[test]
fn pi_compactions() {
    let compaction = |id: &str, parent: &str, kept: &str, more: &str| {
        format!(
            r#"{{"type":"compaction","id":"{id}","parentId":"{parent}","summary":"sum {id}","firstKeptEntryId":"{kept}","tokensBefore":9{more}}}"#
        )
    };
    let (a, b, c) = (user("a", "null"), user("b", "\"a\""), user("c", "\"b\""));
    let d = compaction("d", "c", "b", "");
    let e = user("e", "\"d\"");
    let transcript = read(&pi(&[&a, &b, &c, &d, &e]));
    let found = transcript.context(None).unwrap();
    assert_eq!(context(&found), ["compactionSummary: sum d", "user: b", "user: c", "user: e"]);
    assert_eq!(found.compaction.as_deref(), Some("d"));
    assert_eq!(found.entries[0].message().unwrap().meta.tokens_before, Some(9));
    assert_eq!(line(&transcript), ["user: a", "user: b", "user: c", "user: e"]);
    // A compaction that names itself keeps nothing and has its own prompt; the last one wins.
    let system =
        r#"{"type":"message","id":"f","parentId":"e","message":{"role":"system","content":"old"}}"#;
    let g = compaction("g", "f", "g", r#","systemMessage":{"role":"system","content":"new"}"#);
    let h = user("h", "\"g\"");
    let text = pi(&[&a, &b, &c, &d, &e, system, &g, &h]);
    let found = read(&text).context(None).unwrap();
    assert_eq!(context(&found), ["system: new", "compactionSummary: sum g", "user: h"]);
    let kept = text.replace(r#""firstKeptEntryId":"g""#, r#""firstKeptEntryId":"e""#);
    let found = read(&kept).context(None).unwrap();
    assert_eq!(context(&found), ["system: new", "compactionSummary: sum g", "user: e", "user: h"]);
    // After the undo the branch reads as if the compaction did not exist, including later turns.
    let undo = r#"{"type":"custom","id":"u","parentId":"h","customType":"ctx.undo","data":{"targetId":"g"}}"#;
    let transcript = read(&pi(&[&a, &b, &c, &d, &e, system, &g, &h, undo]));
    let found = transcript.context(None).unwrap();
    assert_eq!(found.compaction.as_deref(), Some("d"));
    assert_eq!(found.entries.len(), 6);
    assert_eq!(transcript.compactions().unwrap(), 1);
}

#[test]
fn pi_context_edits() {
    let result = r#"{"type":"message","id":"r","parentId":"a","message":{"role":"toolResult","toolCallId":"c","toolName":"t","content":[{"type":"text","text":"long"}],"isError":false}}"#;
    let edit = |id: &str, parent: &str, target: &str, replacement: &str| {
        format!(
            r#"{{"type":"context_edit","id":"{id}","parentId":"{parent}","targetId":"{target}","replacement":{replacement}}}"#
        )
    };
    let first = edit("x", "r", "r", "null");
    let second = edit("y", "x", "r", r#"{"content":[{"type":"text","text":"short"}]}"#);
    let third = edit("z", "y", "a", "null");
    let transcript = read(&pi(&[&user("a", "null"), result, &first, &second, &third]));
    assert_eq!(context(&transcript.context(None).unwrap()), ["toolResult: #c=short"]);
    let at = |id: &str| transcript.context(transcript.find(id).as_ref()).unwrap();
    assert_eq!(context(&at("r")), ["user: a", "toolResult: #c=long"]);
    assert_eq!(context(&at("x")), ["user: a"]);
    assert_eq!(line(&transcript), ["user: a", "toolResult: #c=long"]);
}

#[test]
fn pi_v1_and_v2() {
    let v1 = [
        r#"{"type":"session","id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}"#,
        r#"{"type":"message","message":{"role":"user","content":"one"}}"#,
        r#"{"type":"message","message":{"role":"hookMessage","customType":"h","content":"two"}}"#,
        r#"{"type":"compaction","summary":"sum","firstKeptEntryIndex":2,"tokensBefore":1}"#,
        r#"{"type":"message","message":{"role":"user","content":"three"}}"#,
    ];
    let transcript = read(&v1.join("\n"));
    let ids: Vec<_> = transcript.entries.iter().map(|e| e.id.to_string()).collect();
    assert_eq!(ids, ["00000000", "00000001", "00000002", "00000003"]);
    let expected = ["compactionSummary: sum", "custom: two", "user: three"];
    assert_eq!(context(&transcript.context(None).unwrap()), expected);
    let mut copy = Vec::new();
    transcript.convert(Format::PI, &mut copy).unwrap();
    let copy = String::from_utf8(copy).unwrap();
    assert!(copy.contains(r#""firstKeptEntryId":"00000001""#) && !copy.contains("hookMessage"));
    let migrated = read(&copy);
    assert_eq!(migrated.header.version, Some(3));
    assert_eq!(migrated.problems, []);
    assert_eq!(context(&migrated.context(None).unwrap()), expected);
    let v2 =
        pi(&[&user("a", "null"), &user("b", "\"a\"")]).replace("\"version\":3", "\"version\":2");
    assert_eq!(line(&read(&v2)), ["user: a", "user: b"]);
}
