// SPDX-License-Identifier: Apache-2.0
/// The columns for resource servers that check access tokens.
enum IntrospectionSchema {
  static let statements = """
    -- Whether the client may check access tokens.
    ALTER TABLE api_client ADD COLUMN introspection INTEGER NOT NULL DEFAULT 0;

    -- How the token was obtained (`AccessTokenOrigin`); empty for tokens of earlier versions.
    ALTER TABLE access_token ADD COLUMN origin TEXT NOT NULL DEFAULT '';
    """
}
