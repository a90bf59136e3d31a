//! Identifies the owner of a token across refreshes.
//!
//! A key lasts for months. A login token changes hourly, but its conversations must continue. The
//! claims used here are not verified: the request contains the token, and the provider verifies it.
//! A false claim could only lead to a conversation whose messages the client must already know word
//! for word.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// Longer tokens are not parsed.
const LONGEST: usize = 16 << 10;

/// Prefixes of login tokens without owner information: Anthropic's and Google's.
const RENEWED: [&str; 2] = ["sk-ant-oat", "ya29."];

/// The owner of a token. Equal values belong to the same user.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The token's issuer and subject.
    Claimed(String, String),
    /// The owner of the session, whose name is random and thus unique.
    OfSession,
    /// The token itself identifies the owner.
    Token,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
}

/// Returns the owner of an `authorization` header value. `session` is the client's session name.
pub(super) fn owner(header: &[u8], session: Option<&[u8]>) -> Owner {
    let Some(token) = token(header) else { return Owner::Token };
    if let Some(Claims { iss, sub }) = claims(token) {
        return Owner::Claimed(iss, sub);
    }
    let is_renewed = RENEWED.iter().any(|beginning| token.starts_with(beginning));
    match is_renewed && session.is_some_and(is_unique) {
        true => Owner::OfSession,
        false => Owner::Token,
    }
}

fn token(header: &[u8]) -> Option<&str> {
    let (scheme, token) = std::str::from_utf8(header).ok()?.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer") && header.len() <= LONGEST;
    is_bearer.then(|| token.trim())
}

/// Returns the claims of a JSON Web Token, if it has both.
fn claims(token: &str) -> Option<Claims> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let json = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let claims: Claims = serde_json::from_slice(&json).ok()?;
    (!claims.iss.is_empty() && !claims.sub.is_empty()).then_some(claims)
}

/// Whether a name is random: a UUID of version 4 or 7.
fn is_unique(session: &[u8]) -> bool {
    let name = std::str::from_utf8(session).ok().and_then(|name| name.trim().parse().ok());
    name.is_some_and(|name: uuid::Uuid| matches!(name.get_version_num(), 4 | 7))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jwt(claims: &str) -> Vec<u8> {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("Bearer {}.{}.sig", part(r#"{"alg":"RS256"}"#), part(claims)).into_bytes()
    }

    #[test]
    fn a_renewed_token_keeps_its_owner() {
        let of = |claims: &str| owner(&jwt(claims), None);
        let first = of(r#"{"iss":"https://login","sub":"ann","exp":1}"#);
        assert_eq!(first, of(r#"{"exp":2,"iss":"https://login","sub":"ann"}"#));
        assert_eq!(first, Owner::Claimed("https://login".into(), "ann".into()));
        for other in [
            r#"{"iss":"https://login","sub":"bob","exp":1}"#,
            r#"{"iss":"https://other","sub":"ann","exp":1}"#,
        ] {
            assert_ne!(first, of(other));
        }
    }

    #[test]
    fn a_token_without_claims_is_its_own_owner() {
        for claims in [r#"{"sub":"ann"}"#, r#"{"iss":"a","sub":""}"#, r#"{"iss":1,"sub":2}"#, "x"] {
            assert_eq!(owner(&jwt(claims), None), Owner::Token, "{claims}");
        }
        for header in ["Bearer sk-123", "Basic a.b.c", "Bearer a.b.c.d", "Bearer", "ya29.x", ""] {
            assert_eq!(owner(header.as_bytes(), None), Owner::Token, "{header}");
        }
        assert_eq!(owner(&[0xff, b' ', 0xff], None), Owner::Token);
    }

    #[test]
    fn a_login_without_claims_is_identified_by_its_unique_session() {
        let unique: &[u8] = b"3f2b8c1e-6a55-4b0e-9d41-0a1b2c3d4e5f";
        for login in ["Bearer sk-ant-oat01-abc", "bearer ya29.a0Af"] {
            assert_eq!(owner(login.as_bytes(), Some(unique)), Owner::OfSession);
            for session in [None, Some(b"1".as_slice()), Some(b"main")] {
                assert_eq!(owner(login.as_bytes(), session), Owner::Token);
            }
        }
        // A key does not change.
        assert_eq!(owner(b"Bearer sk-ant-api03-abc", Some(unique)), Owner::Token);
    }
}
