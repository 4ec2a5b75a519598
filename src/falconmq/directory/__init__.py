"""The directory: what it holds, and the two places that can hold it, a store and LDAP."""
