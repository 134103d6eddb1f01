//! Certificates that TLS trusts, and the meaning of its errors.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error, RootCertStore};

use crate::config::Config;

/// Remedy if the server may not speak TLS.
const NO_TLS: &str = "if it does not speak TLS at this port, set tls = no or another port";

/// Reads the certificates of the configuration.
pub(super) fn client(config: &Config) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let ca = &config.tls_ca;
    let bad = |path: &Path, what: &str, error: &dyn std::fmt::Display| {
        format!("{}: {what}: {error}; expected a PEM file", path.display())
    };
    let certificates =
        CertificateDer::pem_file_iter(ca).map_err(|error| bad(ca, "cannot read tls_ca", &error))?;
    for certificate in certificates.flatten() {
        // Stores of systems have certificates that are not understood; one that is enough.
        let _ = roots.add(certificate);
    }

    if roots.is_empty() {
        return Err(bad(ca, "tls_ca", &"no certificate in it"));
    }

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let client = match (&config.tls_cert, &config.tls_key) {
        (Some(cert), Some(key)) => {
            let chain = CertificateDer::pem_file_iter(cert)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| bad(cert, "cannot read tls_cert", &error))?;
            let secret = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| bad(key, "cannot read tls_key", &error))?;
            builder
                .with_client_auth_cert(chain, secret)
                .map_err(|error| bad(key, "tls_key", &error))?
        }
        _ => builder.with_no_client_auth(),
    };

    Ok(Arc::new(client))
}

/// An error of a handshake with `server`, whose certificate was to be for `host`, with what to do.
pub(super) fn explained(error: &io::Error, server: &str, host: &str) -> io::Error {
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    let remedy = match tls {
        Some(tls) => remedy(tls, host),
        None => match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                format!("the server ended the handshake; {NO_TLS}")
            }
            _ => String::new(),
        },
    };

    let sign = if remedy.is_empty() { "" } else { "; " };
    io::Error::new(
        error.kind(),
        format!("{server}: TLS: {error}{sign}{remedy}"),
    )
}

fn remedy(error: &Error, host: &str) -> String {
    use CertificateError as Bad;
    match error {
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "renew the server's certificate, or set this host's clock if it is wrong".into()
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "set this host's clock, or wait until the server's certificate is valid".into()
        }
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "tls_ca has to name the authority that signed the server's certificate".into()
        }
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            format!(
                "the certificate has to be for {host:?}: check `server`, the addresses that the server advertises, \
                 and DNS; this may be another host"
            )
        }
        Error::InvalidMessage(_) => NO_TLS.into(),
        Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied,
        ) => "the server wants another certificate of this host; check tls_cert and tls_key".into(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_handshake_say_what_to_do() {
        let text = |error: Error| explained(&io::Error::other(error), "b:9093", "b").to_string();
        let expired = text(Error::InvalidCertificate(CertificateError::Expired));
        assert!(expired.starts_with("b:9093: TLS: ") && expired.contains("clock"));
        let name = text(Error::InvalidCertificate(CertificateError::NotValidForName));
        assert!(name.contains("has to be for \"b\""), "{name}");
        let alert = text(Error::AlertReceived(AlertDescription::CertificateRequired));
        assert!(alert.contains("tls_cert"), "{alert}");
        let eof = io::Error::new(io::ErrorKind::UnexpectedEof, "end");
        assert!(explained(&eof, "b:1", "b").to_string().contains("tls = no"));
    }
}
