"""The trees that a claim is about: method, questions, restrictions and wishes, in numbers and in the words of the scope."""
