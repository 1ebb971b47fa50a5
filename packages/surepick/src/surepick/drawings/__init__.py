"""What closed rounds say of the candidates, as one record, and its pictures: for pages, notebooks and terminals."""
